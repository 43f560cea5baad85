package shield

import (
	"strings"
	"testing"
)

// TestEntriesAreFolded holds that the lists have their entries as words of a text are folded: they are not folded when
// they are read, which took a third of the time in which an Inspector is made. An entry that is not would never be
// found. And none is there twice.
func TestEntriesAreFolded(t *testing.T) {
	for _, list := range []string{englishLexicon, worldLexicon} {
		seen := map[string]bool{}
		for line := range strings.Lines(list) {
			head, entries, ok := strings.Cut(strings.TrimSpace(line), ":")
			if !ok || line[0] == '#' {
				continue
			}
			for entry := range strings.SplitSeq(entries, ",") {
				if said := head + ":" + strings.TrimSpace(entry); seen[said] {
					t.Errorf("%s is there twice", said)
				} else {
					seen[said] = true
				}
				entry = strings.TrimSuffix(strings.TrimSpace(entry), "*")
				if want := strings.Join(strings.FieldsFunc(foldWord(entry), func(r rune) bool {
					return r == ' ' ||
						r == '_'
				}), " "); entry != want {
					t.Errorf("%s: %q, want %q", head, entry, want)
				}
				if len(entry) >= maxEntryBytes {
					t.Errorf("%s: %q is longer than words are put together", head, entry)
				}
				if strings.Contains(entry, "*") {
					t.Errorf("%s: %q has a star within", head, entry)
				}
			}
		}
	}
}
