package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// listing is a call of a tool whose schema describes what it takes. What is not in it, a server may take for anything.
func listing(arguments string) Request {
	q := call("fs", "x", arguments)
	q.Spec.Definition = json.RawMessage(`{"name":"x","inputSchema":{"type":"object","properties":{
		"content":{"type":"string"},"raw":{"type":"string","contentMediaType":"application/json"},
		"paths":{"type":"array","items":{"type":"string"}},"more":{"anyOf":[{"type":"array"},{"type":"null"}]}}}}`)
	return q
}

// TestATextIsAlsoTheJSONInIt has arguments in which a list or an object stands as a text. Many servers read that as
// the list or the object, unless what they want is a text.
func TestATextIsAlsoTheJSONInIt(t *testing.T) {
	type rule = drawbridge.Rule
	absent := false
	etc, force := rule{Paths: []string{"/etc/**"}}, rule{Args: is("o.force", `true`)}
	for _, tt := range []struct {
		rule            rule
		arguments       string
		denied, allowed bool
	}{
		{etc, `{"paths":["/etc/x"]}`, true, true},
		{etc, `{"paths":"[\"/etc/x\"]"}`, true, false},
		{etc, `{"paths":" [\"\\u002fetc/x\", NaN]"}`, true, false},
		{etc, `{"more":"[{\"path\":\"/etc/x\",\"path\":\"/ok\"}]"}`, true, false},
		{etc, `{"raw":"{\"path\":\"/etc/x\"}"}`, true, true},
		{etc, `{"other":"{\"path\":\"/etc/x\"}"}`, true, true},
		{etc, `{"other":"{\"path\":\"/etc/x\",\"to\":\"\\u002fx\"}"}`, true, false},
		{etc, `{"path":"/etc/a","other":"{\"path\":\"/home/x\"}"}`, true, false},
		{etc, `{"path":"/etc/a","content":"{\"path\":\"/home/x\"}"}`, true, false},
		{etc, `{"content":"{\"path\":\"/etc/x\"}"}`, true, true},
		{etc, `{"content":"{\"path\":\"\\u002fetc/x\"}"}`, false, false},
		{etc, `{"other":"{\"path\":\"/etc/x\"} and more"}`, true, true},
		{force, `{"o":"{\"force\":true}"}`, true, false},
		{force, `{"o":"{\"force\":false}"}`, false, false},
		{rule{Args: is("branch", `"main"`)}, `{"branch":"[\"main\"]"}`, true, false},
		{rule{Args: []drawbridge.Condition{{Name: "o.force", Present: &absent}}},
			`{"o":"{\"force\":true}"}`, true, false},
		{rule{ArgsMatch: `"/etc/x"`}, `{"paths":"[\"\\u002fetc/x\"]"}`, true, false},
		{rule{When: `has(args.o) && args.o == {"force": true}`}, `{"o":"{\"force\":true}"}`, true, false},
		{rule{When: `type(args.o) != string`}, `{"o":"{}"}`, true, false},
		{rule{When: `args.o.startsWith("{")`}, `{"o":"{}"}`, true, false},
	} {
		q := listing(tt.arguments)
		denies, allows := tt.rule, tt.rule
		denies.Effect, allows.Effect = deny, allow
		denied := compiled(t, allow, denies).Decide(q).Effect == deny
		allowed := compiled(t, deny, allows).Decide(q).Effect == allow
		if denied != tt.denied || allowed != tt.allowed {
			t.Errorf("%+v with %s: denied %v, allowed %v, want %v and %v", tt.rule, tt.arguments, denied, allowed,
				tt.denied, tt.allowed)
		}
	}
	deep := `{"o":"` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `"}`
	if d := compiled(t, allow, drawbridge.Rule{Effect: allow, ArgsMatch: "o"}).Decide(
		listing(deep)); d.Effect != deny || !strings.Contains(d.Why, "too deeply") {
		t.Errorf("a deep list in a text: %+v", d)
	}
}
