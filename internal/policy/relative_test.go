package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// from is a call of a server whose relative paths may start at some directories.
func from(arguments string, dirs ...string) Request {
	q := call("fs", "x", arguments)
	q.Dirs = dirs
	return q
}

// TestARelativePathLeadsFromEachDirectory has relative paths of a server that starts in /home/ada and was given
// /srv/root.
func TestARelativePathLeadsFromEachDirectory(t *testing.T) {
	for _, tt := range []struct {
		glob, arguments string
		denied, allowed bool
	}{
		{"/srv/root/secret/**", `{"path":"secret/s.txt"}`, true, false},
		{"/srv/root/secret/**", `{"path":"./a/../secret"}`, true, false},
		{"/srv/root/secret/**", `{"path":"SECRET\\s.txt"}`, true, false},
		{"/srv/root/secret/**", `{"paths":["a","secret/s.txt"]}`, true, false},
		{"/srv/root/secret/**", `{"paths":"[\"secret/s.txt\"]"}`, true, false},
		{"/srv/root/secret/**", `{"files":{"secret/s.txt":"text"}}`, true, false},
		{"/srv/root/secret/**", `{"path":"secrets/s.txt"}`, false, false},
		{"/srv/root/**", `{"path":""}`, true, false},
		{"/srv/root/**", `{"path":"."}`, true, false},
		{"/srv/root/**", `{"path":"/srv/root/a"}`, true, true},
		{"/srv/root/**", `{"path":"a"}`, true, false}, // or one of /home/ada
		{"~/.ssh/**", `{"path":".ssh/id"}`, true, false},
		{"**/.env", `{"path":"src/.env"}`, true, true},
		{"src/**", `{"path":"src/x"}`, true, true},
		{"src/**", `{"path":"/srv/root/src/x"}`, false, false},
		{"**", `{"path":"src/x"}`, true, true},
		// Absolute to some, and to others not.
		{"/srv/root/secret/**", `{"path":"~/../secret/s.txt"}`, true, false},
		{"/srv/root/secret/**", `{"path":"c:/../secret/s.txt"}`, true, false},
		{"/srv/root/secret/**", `{"path":"file:///../secret/s.txt"}`, true, false},
		{"/srv/root/secret/**", `{"path":" /../secret/s.txt"}`, true, false},
		{"/srv/root/secret/**", `{"path":"\\x/../secret/s.txt"}`, true, false},
		{"/home/ada/**", `{"path":"~/src/a..b"}`, true, true},
		{"/home/ada/**", `{"path":"~/src/../b"}`, true, false},
	} {
		q := from(tt.arguments, "/home/ada", "file:///srv/ro%6Ft/")
		denied := compiled(t, allow, drawbridge.Rule{Effect: deny, Paths: []string{tt.glob}}).Decide(q).Effect == deny
		allowed := compiled(t, deny, drawbridge.Rule{Effect: allow, Paths: []string{tt.glob}}).Decide(q).Effect == allow
		if denied != tt.denied || allowed != tt.allowed {
			t.Errorf("%s with %s: denied %v, allowed %v, want %v and %v", tt.glob, tt.arguments, denied, allowed,
				tt.denied, tt.allowed)
		}
	}
}

// TestTooManyRelativePathsCannotBeJudged bounds what many paths and many directories take.
func TestTooManyRelativePathsCannotBeJudged(t *testing.T) {
	var dirs []string
	for i := range 100 {
		dirs = append(dirs, fmt.Sprintf("/srv/%d", i))
	}
	q := from(`{"paths":[`+strings.Repeat(`"a",`, 1000)+`"a"]}`, dirs...)
	d := compiled(t, allow, drawbridge.Rule{Effect: deny, Paths: []string{"/etc/**"}}).Decide(q)
	if d.Effect != deny || d.Why != "rule 1 cannot be judged: there are too many relative paths" {
		t.Errorf("%+v", d)
	}
}

// TestDirectoriesCostNothingWithoutPaths holds a decision by rules without paths against itself.
func TestDirectoriesCostNothingWithoutPaths(t *testing.T) {
	p := compiled(t, allow, drawbridge.Rule{Effect: deny, Tools: []string{"shell"}}, drawbridge.Rule{Effect: deny,
		Args: is("branch", `"main"`)})
	cost := func(q Request) float64 { return testing.AllocsPerRun(100, func() { p.Decide(q) }) }
	if with, without := cost(from(`{"path":"a"}`, "/a", "/b")), cost(from(`{"path":"a"}`)); with != without {
		t.Errorf("%v allocations, and without directories %v", with, without)
	}
}
