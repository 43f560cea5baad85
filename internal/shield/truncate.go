package shield

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// minCap is the smallest cap: one that has room for the note of what was cut.
const minCap = 96

// truncateWithNote cuts a text to most bytes, between two characters as people see them, and says at its end how much
// is missing. safetext.Truncate does not serve: it measures in one unit, and here the bound is in bytes and the cut
// between graphemes, so that no part of an emoji or of a letter with its marks is left for detection to look at.
func truncateWithNote(text string, most int) string {
	if len(text) <= most {
		return text
	}
	room := most - 64
	keep, state := 0, -1
	for rest := text; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if keep+len(cluster) > room {
			break
		}
		keep += len(cluster)
	}
	sum := sha256.Sum256([]byte(text[keep:]))
	return text[:keep] + fmt.Sprintf("… [cut %d characters; digest %s]", utf8.RuneCountInString(text[keep:]),
		hex.EncodeToString(sum[:6]))
}
