package label

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// wantOwner checks whose link a URI is; empty is nobody's.
func wantOwner(t *testing.T, l *Links, principal, uri string, want drawbridge.ServerID) {
	t.Helper()
	if got, ok := l.Owner(principal, uri); got != want || ok != (want != "") {
		t.Errorf("%s's %.40s is of %q, want %q", principal, uri, got, want)
	}
}

func TestLinksAreOfWhoGaveThemFirst(t *testing.T) {
	var l Links
	wantOwner(t, &l, "ada", "x:1", "")
	l.Give("ada", "a", "x:1")
	if got := l.Give("ada", "b", "x:1"); got != "a" {
		t.Errorf("what b gives after a is of %q", got)
	}
	l.Give("bob", "b", "x:1")
	wantOwner(t, &l, "ada", "x:1", "a")
	wantOwner(t, &l, "bob", "x:1", "b")
	wantOwner(t, &l, "eve", "x:1", "")
	l.Forget("a")
	wantOwner(t, &l, "ada", "x:1", "")
	wantOwner(t, &l, "bob", "x:1", "b")
	if got := l.Give("ada", "b", "x:1"); got != "b" {
		t.Errorf("when a is gone, what b gives is of %q", got)
	}
}

func TestLinksAreBounded(t *testing.T) {
	var l Links
	uri := func(i int) string { return fmt.Sprint("x:", i) }
	l.Give("bob", "a", "y:")
	for i := range maxLinks {
		l.Give("ada", "a", uri(i))
	}
	l.Give("ada", "a", uri(0)) // given again, it is the youngest
	l.Give("ada", "a", "x:new")
	wantOwner(t, &l, "ada", uri(0), "a")
	wantOwner(t, &l, "ada", uri(1), "")
	wantOwner(t, &l, "ada", uri(2), "a")
	wantOwner(t, &l, "ada", "x:new", "a")
	wantOwner(t, &l, "bob", "y:", "a")

	for i := range maxLinksAll + 10 {
		l.Give(fmt.Sprint("p", i), "a", "z:")
	}
	if got := l.all.Len(); got != maxLinksAll || len(l.of) > maxLinksAll {
		t.Errorf("%d links of %d principals are remembered, want %d links", got, len(l.of), maxLinksAll)
	}
	wantOwner(t, &l, "ada", "x:new", "")
	wantOwner(t, &l, fmt.Sprint("p", maxLinksAll), "z:", "a")

	long := strings.Repeat("x", maxLink+1)
	if got := l.Give("ada", "a", long); got != "a" {
		t.Errorf("a long link of a is of %q", got)
	}
	wantOwner(t, &l, "ada", long, "")
}
