package policy

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestPaths has each pattern in a denying rule and in an allowing one, which are not each other's opposite: what is not
// clear is denied by both.
func TestPaths(t *testing.T) {
	for _, tt := range []struct {
		glob, arguments string
		denied, allowed bool
	}{
		{"/etc/**", `{"path":"/etc/passwd"}`, true, true},
		{"/etc/**", `{"path":"/etc"}`, true, true},
		{"/etc/*", `{"path":"/etc/ssh/x"}`, false, false},
		{"/etc/**", `{"path":"/etc/../home"}`, false, false},
		{"/etc/**", `{"path":"/home/../etc/x"}`, true, true},
		{"/etc/**", `{"path":"//etc//x"}`, true, true},
		{"/etc/**", `{"path":"/ETC/x"}`, true, false},
		{"/etc/**", `{"path":"file:///etc/x"}`, true, true},
		{"/etc/**", `{"path":"FILE://host/%65tc/x"}`, true, true},
		{"/etc/**", `{"path":"\\etc\\x"}`, true, true},
		{"/etc/**", `{"path":"../../etc/x"}`, true, false},
		{"/ok/**", `{"path":"/ok/a\\b/../../x"}`, true, false}, // "/ok/x", or "/x" where "\" is a letter
		{"/x", `{"path":"/ok/a\\b/../../x"}`, true, false},
		{"/etc/**", `{"path":"~\\..\\..\\etc\\x"}`, true, false},
		{"/etc/**", `{"path":"file:/etc/x"}`, true, true},
		{"/etc/**", `{"path":"File:\\etc\\x"}`, true, true},
		{"/etc/x", `{"path":"file:///etc/x?y#z"}`, true, false},
		{"/etc/**", `{"url":"file:///etc/x"}`, true, true},
		{"/etc/**", `{"url":"https://a/etc/x"}`, false, false},
		{"/etc/**", `{"q":"../../etc/x"}`, true, false},
		{"/etc/**", `{"q":"..\\..\\etc\\x"}`, true, false},
		{"/ok/**", `{"path":"/ok/a","q":"../../etc/x"}`, true, false},
		{"/etc/**", `{"q":"%2Fetc%2Fx"}`, true, false},
		{"/etc/**", `{"q":["a",{"%2fetc%2fx":1}]}`, true, false},
		{"/etc/**", `{"q":"100%, or 50%2F60"}`, false, false},
		{"/etc/**", `{"url":"file:///e\ntc/x"}`, true, false}, // readers of URLs take these out
		{"/etc/**", `{"url":"fi\tle:///etc/x"}`, true, false},
		{"/etc/**", `{"url":"file:///ok/.\t./etc/x"}`, true, false},
		{"/ok/**", `{"url":"file:///ok/.\t./etc/x"}`, true, false},
		{"/etc/**", `{"url":"\u0001file:///etc/x"}`, true, false},
		{"/etc/**", `{"url":"file:\\\\localhost\\etc\\x"}`, true, false}, // a host, or a directory
		{"/etc/**", `{"url":"file:/%2Fetc/x"}`, true, false},             // "/etc/x", or "/x" of a host
		{"/etc/**", `{"url":"file:etc/x"}`, true, false},
		{"/etc/**", `{"url":"file:///a/etc%5C../../etc/x"}`, true, false}, // "\" is a letter, or not
		{"/a/etc/**", `{"url":"file:///a/etc%5C../../etc/x"}`, true, false},
		{"/etc/**", `{"url":"file:///ok/x%00/etc/x"}`, true, false},
		{"/etc/**", `{"text":"file: see below"}`, false, false},
		{"/etc/**", `{"path":"/ok\u0000/etc/x"}`, true, false},
		{"/ok/**", `{"path":"/ok/x\u0000"}`, true, false},
		{"/etc/**", `{"path":"/ok","files":[{"path":"/etc/x","content":"/etc/y"}]}`, true, false},
		{"/ok/**", `{"path":"/ok/a","edits":{"new_path":"/etc/x"}}`, true, false},
		{"/ok/**", `{"files":[{"filePath":"/ok/x"}]}`, true, true},
		{"/etc/**", `{"files":{"/etc/x":"text"}}`, true, true},
		{"/ok/**", `{"path":"/ok/a","files":{"/etc/x":"text"}}`, true, false},
		{"/ok/**", `{"path":"/ok/a","files":{"name":"text"},"other":{"/etc/x":"text"}}`, true, false},
		{"/etc/**", `{"profile":"etc/x","path_style":"etc/x"}`, false, false},
		{"/etc/**", `{"outputDir":"/etc/x"}`, true, true},
		{"/kit/**", `{"path":"/\u212Ait/x"}`, true, false}, // the sign for kelvin
		{"/etc/**", `{"path":"/ok","dest":"/etc/x"}`, true, false},
		{"/ok/**", `{"path":"/ok/a","Dest":"/ok/b"}`, true, true},
		{"/etc/**", `{"paths":["/ok","/etc/x"]}`, true, false},
		{"/etc/**", `{"command":"cat --file=/etc/x"}`, true, true},
		{"/etc/**", `{"command":"cat</etc/x; ls"}`, true, true},
		{"/etc/**", `{"command":["cat","/etc/x"]}`, true, true},
		{"~/.ssh/**", `{"path":"~/.ssh/id"}`, true, true},
		{"/home/*/.ssh/**", `{"path":"~/.ssh/id"}`, true, true},
		{"**/.env", `{"path":"src/.env"}`, true, true},
		{"/etc/**", `{}`, false, false},
		{"/etc/**", `{"other":"/etc/x"}`, true, true},
		{"c:/windows/**", `{"path":"C:\\Windows\\x"}`, true, false},
	} {
		q := call("fs", "x", tt.arguments)
		denied := compiled(t, allow, drawbridge.Rule{Effect: deny, Paths: []string{tt.glob}}).Decide(q).Effect == deny
		allowed := compiled(t, deny, drawbridge.Rule{Effect: allow, Paths: []string{tt.glob}}).Decide(q).Effect == allow
		if denied != tt.denied || allowed != tt.allowed {
			t.Errorf("%s with %s: denied %v, allowed %v, want %v and %v", tt.glob, tt.arguments, denied, allowed,
				tt.denied, tt.allowed)
		}
	}
}

func TestAURIIsJudgedAsItWillBeRead(t *testing.T) {
	q := Request{Caller: ada, Kind: KindResource, Method: "resources/read", Trust: "untrusted"}
	for _, tt := range []struct {
		uri             string
		denied, allowed bool
	}{
		{"file:///pub/a", false, true},
		{"file:///pub/../etc/x", true, false},
		{"file:///pub/%2e%2e/etc/x", true, false},
		{"file:///etc/x", true, false},
		{"file:/etc/x", true, false},
		{"file://localhost/etc/x", true, false},
		{"file://host/pub/../etc/x", true, false},
		{"file:///pub/..\\etc/x", true, false},
		{"FILE:///etc/x", true, false},
	} {
		q.Spec = drawbridge.Spec{Server: "fs", Tool: tt.uri, Name: drawbridge.CardName(tt.uri)}
		denied := compiled(t, allow, drawbridge.Rule{Effect: deny, Resources: []string{"file:///etc/*"}}).Decide(
			q).Effect == deny
		allowed := compiled(t, deny, drawbridge.Rule{Effect: allow, Resources: []string{"file:///pub/*"}}).Decide(
			q).Effect == allow
		byPath := compiled(t, allow, drawbridge.Rule{Effect: deny, Paths: []string{"/etc/**"}}).Decide(q).Effect == deny
		if denied != tt.denied || allowed != tt.allowed || byPath != tt.denied {
			t.Errorf("%s: denied %v (by path %v), allowed %v, want %v and %v", tt.uri, denied, byPath, allowed,
				tt.denied, tt.allowed)
		}
	}
}

// TestAURIOfAnySchemeIsJudgedAsItWillBeRead has what servers make of URIs: readers of URLs take dots out, and
// templates' values are unescaped wherever they stand.
func TestAURIOfAnySchemeIsJudgedAsItWillBeRead(t *testing.T) {
	q := Request{Caller: ada, Kind: KindResource, Method: "resources/read", Trust: "untrusted"}
	for _, tt := range []struct {
		glob, uri       string
		denied, allowed bool
	}{
		{"db:/secret/*", "db:/pub/../secret/x", true, false},
		{"db:/pub/*", "db:/pub/../secret/x", true, false},
		{"db://secret/*", "db://%73ecret/schema", true, false},
		{"db://secret", "db://%73ecret", true, false},
		{"note:secret", "note:se%63ret", true, false},
		{"note:secret", "note:se\ncret", true, false},
		{"note:secret", "note:secret", true, true},
		{"http://h/secret/*", `http:\\h\secret\x`, true, false},
		{"http://h/secret/*", "http://h/se\tcret/x", true, false},
		{"http://h/pub/*", "http://h/pub/a%20b", true, true},
		{"http://h/a b", "http://h/a%20b", true, false},
		{"http://h/pub/*", "http://h/pub/x?to=../../y", true, true},
	} {
		q.Spec = drawbridge.Spec{Server: "fs", Tool: tt.uri, Name: drawbridge.CardName(tt.uri)}
		denied := compiled(t, allow, drawbridge.Rule{Effect: deny, Resources: []string{tt.glob}}).Decide(
			q).Effect == deny
		allowed := compiled(t, deny, drawbridge.Rule{Effect: allow, Resources: []string{tt.glob}}).Decide(
			q).Effect == allow
		if denied != tt.denied || allowed != tt.allowed {
			t.Errorf("%s with %q: denied %v, allowed %v, want %v and %v", tt.glob, tt.uri, denied, allowed,
				tt.denied, tt.allowed)
		}
	}
}
