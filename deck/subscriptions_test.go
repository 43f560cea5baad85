package deck

import (
	"fmt"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

// TestTheEndOfASessionLooksAtItsOwn: what is held is known by whose it is, and nothing stays behind.
func TestTheEndOfASessionLooksAtItsOwn(t *testing.T) {
	var w subscriptionTable
	sub := func(principal, session string, i int) subscription {
		return subscription{Principal: principal, Session: session, Topic: topicURI, Public: fmt.Sprint("file:///", i)}
	}
	counted := func() int {
		n := 0
		for _, own := range w.bySubscriber {
			n += len(own)
		}
		return n
	}
	for i := range 10 {
		server := drawbridge.ServerID(fmt.Sprint("s", i%2))
		for _, one := range []subscription{sub("ada", "1", i), sub("ada", "2", i), sub("bob", "1", i),
			sub("ada", "", i), sub("ada", "", i)} {
			w.Add(one, server, one.Public)
		}
	}
	if len(w.bySubscription) != 40 || counted() != 40 {
		t.Fatalf("%d are held, %d by whose they are", len(w.bySubscription), counted())
	}
	if tell := w.dropSession(drawbridge.Caller{Principal: "ada", Session: "1"}); len(tell) > 0 {
		t.Errorf("%v are told, and others watch the same", tell)
	}
	if len(w.bySubscription) != 30 || counted() != 30 || w.bySubscriber[subscriber{"ada", "1"}] != nil {
		t.Errorf("%d are held, %d by whose they are", len(w.bySubscription), counted())
	}
	w.Remove(sub("ada", "", 0)) // it was made twice
	if w.Remove(sub("ada", "", 0)); counted() != 29 {
		t.Errorf("%d are held", counted())
	}
	w.dropSession(drawbridge.Caller{Principal: "ada", Session: "2"})
	w.ForgetServer("s0")
	if len(w.bySubscription) != 10 || counted() != 10 {
		t.Errorf("%d are held, %d by whose they are", len(w.bySubscription), counted())
	}
	w.dropSession(drawbridge.Caller{Principal: "ada"})
	tell := w.dropSession(drawbridge.Caller{Principal: "bob", Session: "1"})
	if diff := cmp.Diff([]drawbridge.ServerID{"s1"}, tell); diff != "" || len(w.bySubscription)+
		len(w.bySubscriber) > 0 {
		t.Errorf("%d and %d are left: %s", len(w.bySubscription), len(w.bySubscriber), diff)
	}
}
