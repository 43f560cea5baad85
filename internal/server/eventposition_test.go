package server

import "testing"

// FuzzEventID reads event ids: what is read is spelled in one way only, and by one session.
func FuzzEventID(f *testing.F) {
	tag := sessionTag("mine")
	for _, id := range []string{tag + "-0-0", tag + "-12-345", tag + "-1", tag + "-01-1", tag + "-0--1", "", "-",
		sessionTag("yours") + "-1-1"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		at, ok := parseEventID(tag, id)
		switch {
		case !ok:
		case at.encodeID(tag) != id || at.stream < 0 || at.event < 0:
			t.Errorf("%q was read as %+v", id, at)
		default:
			if _, ok := parseEventID(sessionTag("yours"), id); ok {
				t.Errorf("%q is of two sessions", id)
			}
		}
	})
}
