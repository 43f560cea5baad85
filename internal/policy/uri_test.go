package policy

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestSpellingsOfAURI has spellings of a URI that is denied, and what an allowing rule makes of them.
func TestSpellingsOfAURI(t *testing.T) {
	for _, tt := range []struct {
		glob, uri       string
		denied, allowed bool
	}{
		{"evil://secret/*", "evil://secret/1", true, true},
		{"evil://secret/*", "EVIL://Secret/%31", true, true},
		{"evil://secret/*", "evil://secret/a/../1", true, true},
		{"evil://secret/*", "evil://secret/../other/1", true, false}, // "/other/1" of secret, or of the host other
		{"evil://secret/*", "evil://ok/../secret/1", true, false},
		{"evil://secret/*", "evil://ok/%2e%2e/secret/1", true, false},
		{"evil://secret/*", "evil:///secret/1", true, false},
		{"evil://secret/*", "evil:/secret/1", true, false},
		{"evil://secret/*", "evil:secret/1", true, false},
		{"evil://secret/*", "evil://x@secret/1", true, false},
		{"evil://secret/*", "evil://x:y@secret/1", true, false},
		{"evil://secret/*", "evil://secret:80/1", true, false},
		{"evil://secret/*", "evil://secret:/1", true, false},
		{"evil://secret/*", "evil://secret./1", true, false},
		{"evil://secret/1", "evil://secret/1?x", true, false},
		{"evil://secret/1", "evil://secret/1#x", true, false},
		{"evil:///secret/*", "evil://secret/1", true, false},
		{"https://a/*", "https://a:443/x", true, false},
		{"https://ok*", "https://ok@evil/x", true, false},
		{"evil://ok/*", "evil://ok/../secret/1", true, false},
		{"memo:///*", "memo:///x/1", true, true},
		{"db://h:5432/*", "db://h:5432/x", true, true},
		{"evil://secret/*", "evil://other/1", false, false},
		{"evil://secret/*", "other://secret/1", false, false},
		{"evil://secret/*", "evil://secrets/1", false, false},
	} {
		q := Request{
			Caller: ada, Kind: KindResource, Method: "resources/read", Trust: "untrusted",
			Spec: drawbridge.Spec{Server: "fs", Tool: tt.uri, Name: drawbridge.CardName(tt.uri)},
		}
		denied := compiled(t, allow, drawbridge.Rule{Effect: deny, Resources: []string{tt.glob}}).Decide(
			q).Effect == deny
		allowed := compiled(t, deny, drawbridge.Rule{Effect: allow, Resources: []string{tt.glob}}).Decide(
			q).Effect == allow
		if denied != tt.denied || allowed != tt.allowed {
			t.Errorf("%s with %s: denied %v, allowed %v, want %v and %v", tt.glob, tt.uri, denied, allowed,
				tt.denied, tt.allowed)
		}
	}
}
