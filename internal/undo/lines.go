package undo

import (
	"bytes"
	"slices"

	"github.com/aymanbagabas/go-udiff"
)

const (
	// maxDiffed is the size in bytes of the largest content whose lines are compared. In a larger content, all lines
	// between the first and the last changed line count as changed.
	maxDiffed = 4 << 20
	// maxHunks is the maximum number of hunks of a change. If there were more, they count as one.
	maxHunks = 1000
)

// A hunk says that a change replaced lines: it removed Removed lines, and wrote Added lines from the line First of the
// new content, counted from 1.
type hunk struct{ First, Removed, Added int }

// changedHunks returns the hunks of a change, in the order of the lines, and the number of lines of the new content. A
// line break that is missing at the end makes no difference.
func changedHunks(before, after []byte) (hunks []hunk, lines int) {
	before, after = withLastBreak(before), withLastBreak(after)
	lines = countLines(after)
	if len(before) <= maxDiffed && len(after) <= maxDiffed {
		hunks = diffHunks(string(before), string(after))
	}
	if len(before) > maxDiffed || len(after) > maxDiffed || len(hunks) > maxHunks {
		hunks = oneHunk(before, after)
	}
	return hunks, lines
}

// withLastBreak returns a content with a line break at its end: a line stays the same if a line follows it.
func withLastBreak(content []byte) []byte {
	if len(content) == 0 || content[len(content)-1] == '\n' {
		return content
	}
	return append(slices.Clip(content), '\n')
}

// setHunks sets the hunks of a change, and the number of lines of the new content.
func (e *entry) setHunks(before, after []byte) {
	hunks, lines := changedHunks(before, after)
	e.Count = lines
	for _, h := range hunks {
		e.Hunks = append(e.Hunks, [3]int{h.First, h.Removed, h.Added})
	}
}

// countLines returns the number of lines of a content.
func countLines(content []byte) int {
	n := bytes.Count(content, []byte{'\n'})
	if len(content) > 0 && content[len(content)-1] != '\n' {
		n++
	}
	return n
}

// diffHunks returns the hunks between two texts.
func diffHunks(before, after string) (hunks []hunk) {
	read, shift := 0, 0 // the bytes of before that were read, and the number of lines before them; how much later lines move
	line := 0
	for _, e := range udiff.Lines(before, after) {
		line += countBreaks(before[read:e.Start])
		removed := before[e.Start:e.End]
		h := hunk{line + shift + 1, countLines([]byte(removed)), countLines([]byte(e.New))}
		line += countBreaks(removed)
		read = e.End
		shift += countBreaks(e.New) - countBreaks(removed)
		if h.Removed != 0 || h.Added != 0 {
			hunks = append(hunks, h)
		}
	}
	return hunks
}

func countBreaks(text string) (n int) {
	for i := range len(text) {
		if text[i] == '\n' {
			n++
		}
	}
	return n
}

// oneHunk returns the hunk from the first to the last line that differ; none if the contents are the same.
func oneHunk(before, after []byte) []hunk {
	old, fresh := splitLines(before), splitLines(after)
	first := 0
	for first < len(old) && first < len(fresh) && bytes.Equal(old[first], fresh[first]) {
		first++
	}
	end, oldEnd := len(fresh), len(old)
	for end > first && oldEnd > first && bytes.Equal(old[oldEnd-1], fresh[end-1]) {
		end, oldEnd = end-1, oldEnd-1
	}
	if end == first && oldEnd == first {
		return nil
	}
	return []hunk{{first + 1, oldEnd - first, end - first}}
}

// splitLines returns the lines of a content with their line breaks.
func splitLines(content []byte) [][]byte {
	lines := bytes.SplitAfter(content, []byte{'\n'})
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// A span is a range of lines with the same owner: the index of a change, or a negative number if no known change wrote
// the lines. Spans have no numbers of lines: they follow each other from line 1.
type span struct{ lines, owner int }

// applyHunks returns the spans of a file after a change with these hunks. ok is false if the hunks do not fit to the
// spans.
func applyHunks(spans []span, hunks []hunk, owner int) (after []span, ok bool) {
	rest, line := slices.Clone(spans), 1 // line is the next line of the new content
	take := func(n int, keep bool) bool {
		for n > 0 {
			if len(rest) == 0 {
				return false
			}
			part := min(n, rest[0].lines)
			if keep {
				after = appendSpan(after, span{part, rest[0].owner})
			}
			if rest[0].lines -= part; rest[0].lines == 0 {
				rest = rest[1:]
			}
			n -= part
		}
		return true
	}
	for _, h := range hunks {
		if h.First < line || h.Removed < 0 || h.Added < 0 || !take(h.First-line, true) || !take(h.Removed, false) {
			return nil, false
		}
		after = appendSpan(after, span{h.Added, owner})
		line = h.First + h.Added
	}
	for _, s := range rest {
		after = appendSpan(after, s)
	}
	return after, true
}

// appendSpan appends a span, and joins it with the last one if both have the same owner.
func appendSpan(all []span, s span) []span {
	if s.lines == 0 {
		return all
	}
	if n := len(all); n > 0 && all[n-1].owner == s.owner {
		all[n-1].lines += s.lines
		return all
	}
	return append(all, s)
}

// totalLines returns the number of lines of spans.
func totalLines(all []span) (n int) {
	for _, s := range all {
		n += s.lines
	}
	return n
}
