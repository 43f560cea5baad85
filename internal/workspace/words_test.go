package workspace

import (
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                            nil,
		" !? ":                        nil,
		"Café CAFÉ cafe\u0301":        {"cafe", "cafe", "cafe"},
		"v1.2.3 joe@mail.org":         {"v1", "2", "3", "joe", "mail", "org"},
		"ﬁne ① don't":                 {"fine", "1", "don", "t"},
		"東京tower":                     {"東", "京", "tower"},
		"Straße ПРИВЕТ":               {"straße", "привет"},
		strings.Repeat("x", 500):      {strings.Repeat("x", maxWord)},
		`"a" OR NEAR(b)* & | ! : \ '`: {"a", "or", "near", "b"},
	} {
		if got := Words(text); !slices.Equal(got, want) {
			t.Errorf("Words(%.40q) = %q, want %q", text, got, want)
		}
	}
}
