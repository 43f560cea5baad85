package index

import (
	"hash/fnv"
)

const (
	// maxEncodedText is the number of bytes of a text from which EncoderWords takes words. Later bytes are ignored.
	maxEncodedText = 4 << 10
	// minPiece and maxPiece are the minimum and the maximum length of a piece of an unknown word, in letters. The
	// markers "<" and ">" of the start and the end of the word count as letters.
	minPiece, maxPiece = 3, 5
)

// EncoderWords returns the distinct words of a text that consist only of the letters a to z, in order of first
// occurrence.
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

// WordPieces returns the slots of the pieces of an unknown word. A piece is a sequence of 3 to 5 letters of the word.
// Its slot is the hash of the piece modulo slots; it is the index of the row with the vector of the piece.
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
