package vigil

import (
	"fmt"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

// TestTheEndOfASessionLooksAtItsOwn: what is held is known by whose it is, and nothing stays behind.
func TestTheEndOfASessionLooksAtItsOwn(t *testing.T) {
	var w Vigils
	sub := func(principal, session string, i int) Subscription {
		return Subscription{Principal: principal, Session: session, Topic: URI, Public: fmt.Sprint("file:///", i)}
	}
	counted := func() int {
		n := 0
		for _, own := range w.of {
			n += len(own)
		}
		return n
	}
	for i := range 10 {
		server := drawbridge.ServerID(fmt.Sprint("s", i%2))
		for _, one := range []Subscription{sub("ada", "1", i), sub("ada", "2", i), sub("bob", "1", i), sub("ada", "", i), sub("ada", "", i)} {
			w.Add(one, server, one.Public)
		}
	}
	if len(w.held) != 40 || counted() != 40 {
		t.Fatalf("%d are held, %d by whose they are", len(w.held), counted())
	}
	if tell := w.EndSession(drawbridge.Caller{Principal: "ada", Session: "1"}); len(tell) > 0 {
		t.Errorf("%v are told, and others watch the same", tell)
	}
	if len(w.held) != 30 || counted() != 30 || w.of[who{"ada", "1"}] != nil {
		t.Errorf("%d are held, %d by whose they are", len(w.held), counted())
	}
	w.Remove(sub("ada", "", 0)) // it was made twice
	if w.Remove(sub("ada", "", 0)); counted() != 29 {
		t.Errorf("%d are held", counted())
	}
	w.EndSession(drawbridge.Caller{Principal: "ada", Session: "2"})
	w.Forget("s0")
	if len(w.held) != 10 || counted() != 10 {
		t.Errorf("%d are held, %d by whose they are", len(w.held), counted())
	}
	w.EndSession(drawbridge.Caller{Principal: "ada"})
	tell := w.EndSession(drawbridge.Caller{Principal: "bob", Session: "1"})
	if diff := cmp.Diff([]drawbridge.ServerID{"s1"}, tell); diff != "" || len(w.held)+len(w.of) > 0 {
		t.Errorf("%d and %d are left: %s", len(w.held), len(w.of), diff)
	}
}
