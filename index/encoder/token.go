package encoder

import (
	"hash/fnv"

	"github.com/drawbridge-mcp/drawbridge/index/words"
)

const (
	// maxText is the most bytes of a text that are read.
	maxText = 4 << 10
	// leastPiece and mostPiece are how many letters a piece of an unknown word has, with a mark for its begin and its end.
	leastPiece, mostPiece = 3, 5
)

// Words gives the words of a text that may have a vector, each once, in the order in which they are first read.
func Words(text string) []string {
	var out []string
	seen := map[string]bool{}
	for _, word := range words.Split(text[:min(len(text), maxText)]) {
		if latin(word) && !seen[word] {
			seen[word] = true
			out = append(out, word)
		}
	}
	return out
}

// latin says whether a word is of the letters a to z alone.
func latin(word string) bool {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return false
		}
	}
	return true
}

// Pieces gives the slots of an unknown word's pieces, among so many.
func Pieces(word string, slots int) []int32 {
	marked := "<" + word + ">"
	var out []int32
	for size := leastPiece; size <= mostPiece; size++ {
		for i := 0; i+size <= len(marked); i++ {
			h := fnv.New32a()
			h.Write([]byte(marked[i : i+size]))
			out = append(out, int32(h.Sum32()%uint32(slots)))
		}
	}
	return out
}
