package safetext

import (
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// A Unit is a unit in which the length of a text is measured.
type Unit int

const (
	// Bytes counts bytes. The text is cut between two code points.
	Bytes Unit = iota
	// Runes counts code points.
	Runes
	// Graphemes counts characters as people see them: a letter with its marks, or an emoji sequence, counts as one.
	Graphemes
)

// Truncate returns s if s has at most max units. Otherwise it returns the beginning of s, followed by ellipsis. The
// result, including the ellipsis, has at most max units. An ellipsis that does not fit is omitted. A negative max means
// zero.
func Truncate(s string, max int, unit Unit, ellipsis string) string {
	if max < 0 {
		max = 0
	}
	if len(s) <= max || prefix(s, max, unit) == len(s) {
		return s
	}
	room := max - length(ellipsis, unit)
	if room < 0 {
		room, ellipsis = max, ""
	}
	return s[:prefix(s, room, unit)] + ellipsis
}

// length returns the length of s in units.
func length(s string, unit Unit) int {
	switch unit {
	case Runes:
		return utf8.RuneCountInString(s)
	case Graphemes:
		return uniseg.GraphemeClusterCount(s)
	}
	return len(s)
}

// prefix returns the length in bytes of the longest beginning of s that has at most max units.
func prefix(s string, max int, unit Unit) int {
	switch unit {
	case Runes:
		return runePrefix(s, max)
	case Graphemes:
		return graphemePrefix(s, max)
	}
	return bytePrefix(s, max)
}

func bytePrefix(s string, max int) int {
	if len(s) <= max {
		return len(s)
	}
	for end := max; end >= 0 && end > max-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return end
		}
	}
	return max // invalid UTF-8: cut anywhere
}

func runePrefix(s string, max int) int {
	count := 0
	for i := range s {
		if count == max {
			return i
		}
		count++
	}
	return len(s)
}

func graphemePrefix(s string, max int) int {
	end, state := 0, -1
	for rest := s; rest != "" && max > 0; max-- {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		end += len(cluster)
	}
	return end
}
