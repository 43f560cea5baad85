package textfile

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

const (
	// maxShownLines is the maximum number of lines of the file, or of line numbers, that a message about a failed edit
	// contains.
	maxShownLines = 20
	// maxShownLine is the number of bytes to which a line is truncated in a message, and before similarity compares it.
	maxShownLine = 200
	// maxComparedLines is the maximum number of lines for which nearestLines calls similarity, which is slow.
	maxComparedLines = 20_000
	// maxCommonLines is how often a line may occur in a file so that nearestLines uses it to find a region. A line that
	// occurs more often, such as a closing brace, is ignored.
	maxCommonLines = 1000
	// minTellingText is the minimum length in bytes of a new text for the message that the edit was probably made
	// before. The message is used if the file already contains the new text; a shorter text may be there by chance.
	minTellingText = 8
)

// describeAmbiguity returns a message to a model for an edit whose old text occurs several times. The message contains
// the line numbers of the occurrences.
func describeAmbiguity(content string, found []replacement) string {
	var numbers []string
	for i, one := range found {
		if i == maxShownLines {
			numbers = append(numbers, "…")
			break
		}
		numbers = append(numbers, fmt.Sprint(lineNumber(content, one.start)))
	}
	return fmt.Sprintf("oldText occurs %d times, in lines %s. Give more of the lines around it, or set replaceAll.",
		len(found), strings.Join(numbers, ", "))
}

// lineNumber returns the number of the line at an offset, counted from 1.
func lineNumber(content string, offset int) int { return 1 + strings.Count(content[:offset], "\n") }

// describeMiss returns a message to a model for an edit whose old text was not found. The message contains the lines of
// the file that are most similar to the old text.
func describeMiss(content string, e Edit) string {
	if content == "" {
		return "oldText was not found: the file is empty."
	}
	text := "oldText was not found."
	if i := strings.Index(content, e.New); i >= 0 && len(strings.TrimSpace(e.New)) >= minTellingText {
		text += fmt.Sprintf(" newText is in line %d: the edit may have been made before.", lineNumber(content, i))
	}
	lines, old := splitLines(content), splitLines(e.Old)
	from, ok := nearestLines(lines, old)
	if !ok {
		return text + " No line of the file resembles it. Read the file again."
	}
	to := min(from+min(len(old), maxShownLines), len(lines))
	var out strings.Builder
	fmt.Fprintf(&out, "%s The most similar lines are:\n", text)
	for i := from; i < to; i++ {
		fmt.Fprintf(&out, "%6d\t%s\n", i+1, safetext.Truncate(lines[i].text, maxShownLine, safetext.Bytes, "…"))
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// nearestLines finds the region in lines that is most similar to old, and returns the index of its first line. That is
// the region with the most lines in common with old. If no line is in common, it begins at the line that is most
// similar to the first nonblank line of old. ok is false if no line is similar.
func nearestLines(lines, old []line) (from int, ok bool) {
	at := map[string][]int{}
	for i, l := range lines {
		if key := trimBoth(l.text); key != "" {
			at[key] = append(at[key], i)
		}
	}
	votes := map[int]int{}
	best := -1
	for j, l := range old {
		where := at[trimBoth(l.text)]
		if len(where) > maxCommonLines {
			continue
		}
		for _, i := range where {
			votes[i-j]++
			if start := i - j; best < 0 || votes[start] > votes[best] || votes[start] == votes[best] && start < best {
				best = start
			}
		}
	}
	if len(votes) > 0 {
		return max(0, best), true
	}
	first := ""
	for _, l := range old {
		if first = trimBoth(l.text); first != "" {
			break
		}
	}
	most := 0.5
	for i, l := range lines[:min(len(lines), maxComparedLines)] {
		if s := similarity(first, trimBoth(l.text)); s > most {
			from, most, ok = i, s, true
		}
	}
	return from, ok
}

// similarity returns how similar two texts are, from 0 to 1. It is Dice's coefficient: the share of pairs of successive
// bytes that the texts have in common.
func similarity(a, b string) float64 {
	a, b = a[:min(len(a), maxShownLine)], b[:min(len(b), maxShownLine)]
	if utf8.RuneCountInString(a) < 2 || utf8.RuneCountInString(b) < 2 {
		return 0
	}
	pairs := map[string]int{}
	for i := range len(a) - 1 {
		pairs[a[i:i+2]]++
	}
	common := 0
	for i := range len(b) - 1 {
		if pairs[b[i:i+2]] > 0 {
			pairs[b[i:i+2]]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b)-2)
}
