package naming

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// wantOwner checks whose link a URI is; empty is no one's.
func wantOwner(t *testing.T, l *LinkOwners, principal, uri string, want drawbridge.ServerID) {
	t.Helper()
	if got, ok := l.Owner(principal, uri); got != want || ok != (want != "") {
		t.Errorf("%s's %.40s is of %q, want %q", principal, uri, got, want)
	}
}

func TestLinksAreOfWhoGaveThemFirst(t *testing.T) {
	var l LinkOwners
	wantOwner(t, &l, "ada", "x:1", "")
	l.Remember("ada", "a", "x:1")
	if got := l.Remember("ada", "b", "x:1"); got != "a" {
		t.Errorf("what b returns after a is of %q", got)
	}
	l.Remember("bob", "b", "x:1")
	wantOwner(t, &l, "ada", "x:1", "a")
	wantOwner(t, &l, "bob", "x:1", "b")
	wantOwner(t, &l, "eve", "x:1", "")
	l.ForgetServer("a")
	wantOwner(t, &l, "ada", "x:1", "")
	wantOwner(t, &l, "bob", "x:1", "b")
	if got := l.Remember("ada", "b", "x:1"); got != "b" {
		t.Errorf("when a is gone, what b returns is of %q", got)
	}
}

func TestLinksAreBounded(t *testing.T) {
	var l LinkOwners
	uri := func(i int) string { return fmt.Sprint("x:", i) }
	l.Remember("bob", "a", "y:")
	for i := range maxLinksPerPrincipal {
		l.Remember("ada", "a", uri(i))
	}
	l.Remember("ada", "a", uri(0)) // given again, it is the youngest
	l.Remember("ada", "a", "x:new")
	wantOwner(t, &l, "ada", uri(0), "a")
	wantOwner(t, &l, "ada", uri(1), "")
	wantOwner(t, &l, "ada", uri(2), "a")
	wantOwner(t, &l, "ada", "x:new", "a")
	wantOwner(t, &l, "bob", "y:", "a")

	for i := range maxLinksTotal + 10 {
		l.Remember(fmt.Sprint("p", i), "a", "z:")
	}
	if got := l.oldestFirst.Len(); got != maxLinksTotal || len(l.byPrincipal) > maxLinksTotal {
		t.Errorf("%d links of %d principals are remembered, want %d links", got, len(l.byPrincipal), maxLinksTotal)
	}
	wantOwner(t, &l, "ada", "x:new", "")
	wantOwner(t, &l, fmt.Sprint("p", maxLinksTotal), "z:", "a")

	long := strings.Repeat("x", maxLinkBytes+1)
	if got := l.Remember("ada", "a", long); got != "a" {
		t.Errorf("a long link of a is of %q", got)
	}
	wantOwner(t, &l, "ada", long, "")
}
