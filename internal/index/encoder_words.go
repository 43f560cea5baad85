package index

import (
	"hash/fnv"
)

const (
	// maxEncodedText is the maximum number of bytes of a text that are encoded.
	maxEncodedText = 4 << 10
	// minPiece and maxPiece are the minimum and maximum length of a piece of an unknown word, in letters. The
	// markers of the start and the end of the word count as letters.
	minPiece, maxPiece = 3, 5
)

// EncoderWords returns the distinct words of a text that may have a vector, in order of first occurrence.
func EncoderWords(text string) []string {
	var out []string
	seen := map[string]bool{}
	for _, word := range SplitWords(text[:min(len(text), maxEncodedText)]) {
		if isLatinWord(word) && !seen[word] {
			seen[word] = true
			out = append(out, word)
		}
	}
	return out
}

// isLatinWord reports whether a word consists only of the letters a to z.
func isLatinWord(word string) bool {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return false
		}
	}
	return true
}

// WordPieces returns a slot for each piece of an unknown word: the hash of the piece modulo slots.
func WordPieces(word string, slots int) []int32 {
	marked := "<" + word + ">"
	var out []int32
	for size := minPiece; size <= maxPiece; size++ {
		for i := 0; i+size <= len(marked); i++ {
			h := fnv.New32a()
			h.Write([]byte(marked[i : i+size]))
			out = append(out, int32(h.Sum32()%uint32(slots)))
		}
	}
	return out
}
