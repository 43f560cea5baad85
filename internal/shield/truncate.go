package shield

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// minCap is the smallest cap. It leaves enough space for the note at the end.
const minCap = 96

// truncateWithNote cuts a text that is longer than most bytes, between two graphemes. It appends a note with the number
// of missing characters; the result has at most most bytes. safetext.Truncate does not support a limit in bytes
// together with a cut between graphemes. A part of an emoji, or of a letter with marks, would itself be detected as
// hidden text.
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
