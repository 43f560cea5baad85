package shield

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// of makes the tree of words, which stand for their places from 1 on.
func of(words []string) (*prefixTree, map[string]uint16) {
	known := map[string]uint16{}
	for i, w := range words {
		if w != "" {
			known[w] = uint16(i%1000 + 1)
		}
	}
	var entries []treeEntry
	for _, w := range slices.Sorted(maps.Keys(known)) {
		entries = append(entries, treeEntry{Text: w, Value: known[w]})
	}
	return newPrefixTree(entries), known
}

// check walks a text, and holds each step against the list.
func check(t *testing.T, tr *prefixTree, known map[string]uint16, text string) {
	t.Helper()
	at := treePosition{}
	for i := range len(text) {
		if i == 0 {
			at = tr.Begin(text[0])
		} else {
			at = tr.Next(at, text[i])
		}
		goesOn := false
		for w := range known {
			goesOn = goesOn || strings.HasPrefix(w, text[:i+1])
		}
		if at.IsNone() == goesOn {
			t.Fatalf("an entry goes on after %q: %v", text[:i+1], goesOn)
		}
		if at.IsNone() {
			return
		}
		if got, want := tr.Value(at), known[text[:i+1]]; got != want {
			t.Fatalf("%q stands for %d, want %d", text[:i+1], got, want)
		}
	}
}

func TestTree(t *testing.T) {
	for _, words := range [][]string{
		nil, {"a"}, {"word", "words", "wording", "w"}, {"all begin alike", "all begin"},
		{"über", "übel", "\xff\x00", "\x00"},
	} {
		tr, known := of(words)
		for _, text := range append(words, "", "b", "wordy", "wor", "all begin alike too", "ü", "\xff") {
			check(t, tr, known, text)
		}
	}
}

func FuzzTree(f *testing.F) {
	f.Add("word words wording w", "wordings")
	f.Add("a aa aaa aab ab b", "aaab")
	f.Fuzz(func(t *testing.T, list, text string) {
		words := strings.Split(list, " ")
		if len(words) > 100 || len(list) > 1000 || len(text) > 1000 {
			return
		}
		tr, known := of(words)
		for _, w := range append(words, text) {
			check(t, tr, known, w)
		}
	})
}
