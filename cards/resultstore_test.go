package cards

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

func openStore(t *testing.T) *ResultStore {
	t.Helper()
	s := NewResultStore()
	s.firstID = func() int { return 1 }
	t.Cleanup(s.Close)
	return s
}

func mustKeep(t *testing.T, s *ResultStore, owner resultOwner, text string) (id string) {
	t.Helper()
	id, _, err := s.keep(owner, "", text, resultOrigin{})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func readAll(s *ResultStore, owner resultOwner, id string) (text string, ok bool) {
	text, _, _, ok = s.read(owner, id, 0, 1<<30, func([]drawbridge.CardName) bool { return true })
	return text, ok
}

func ownerNamed(principal, session string) resultOwner {
	return newResultOwner("g", drawbridge.Caller{Kind: drawbridge.External, Principal: principal, Session: session,
		Scopes: []drawbridge.Scope{"sandbox", "mcp:x"}})
}

// TestWhoReadsAResult keeps a result of one caller and reads it as others that differ in one thing.
func TestWhoReadsAResult(t *testing.T) {
	keeper := drawbridge.Caller{Kind: drawbridge.External, Transport: drawbridge.HTTPTransport, Principal: "ada",
		Session: "s1", Scopes: []drawbridge.Scope{"sandbox", "mcp:x"}}
	stateless := keeper
	stateless.Session, stateless.Client, stateless.Dir = "", []byte(`{"name":"cursor"}`), "/work"
	for name, tt := range map[string]struct {
		keeper  drawbridge.Caller
		change  func(*drawbridge.Caller)
		gateway string
		ok      bool
	}{
		"the same":              {keeper, func(*drawbridge.Caller) {}, "g", true},
		"scopes in order":       {keeper, func(c *drawbridge.Caller) { c.Scopes = []drawbridge.Scope{"mcp:x", "sandbox"} }, "g", true},
		"another gateway":       {keeper, func(*drawbridge.Caller) {}, "h", false},
		"another session":       {keeper, func(c *drawbridge.Caller) { c.Session = "s2" }, "g", false},
		"no session":            {keeper, func(c *drawbridge.Caller) { c.Session = "" }, "g", false},
		"another principal":     {keeper, func(c *drawbridge.Caller) { c.Principal = "bob" }, "g", false},
		"fewer scopes":          {keeper, func(c *drawbridge.Caller) { c.Scopes = c.Scopes[:1] }, "g", false},
		"more scopes":           {keeper, func(c *drawbridge.Caller) { c.Scopes = append(c.Scopes[:2:2], "mcp:y") }, "g", false},
		"another kind":          {keeper, func(c *drawbridge.Caller) { c.Kind = drawbridge.Agent }, "g", false},
		"another transport":     {keeper, func(c *drawbridge.Caller) { c.Transport = drawbridge.StdioTransport }, "g", false},
		"another run":           {keeper, func(c *drawbridge.Caller) { c.Run = "1" }, "g", false},
		"stateless":             {stateless, func(*drawbridge.Caller) {}, "g", true},
		"stateless, another":    {stateless, func(c *drawbridge.Caller) { c.Principal = "bob" }, "g", false},
		"stateless, client":     {stateless, func(c *drawbridge.Caller) { c.Client = []byte(`{"name":"other"}`) }, "g", false},
		"stateless, directory":  {stateless, func(c *drawbridge.Caller) { c.Dir = "/tmp" }, "g", false},
		"stateless and session": {stateless, func(c *drawbridge.Caller) { c.Session = "s1" }, "g", false},
	} {
		s := openStore(t)
		id := mustKeep(t, s, newResultOwner("g", tt.keeper), "text")
		reader := tt.keeper
		tt.change(&reader)
		text, ok := readAll(s, newResultOwner(tt.gateway, reader), id)
		if ok != tt.ok || ok && text != "text" {
			t.Errorf("%s: %q, %v", name, text, ok)
		}
	}
}

func TestResultsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, owner := openStore(t), ownerNamed("ada", "s")
		read := mustKeep(t, s, owner, "read")
		left := mustKeep(t, s, owner, "left")
		<-time.After(resultLifetime - time.Second)
		if _, ok := readAll(s, owner, read); !ok {
			t.Error("a result is gone too early")
		}
		<-time.After(time.Second)
		synctest.Wait()
		if _, ok := readAll(s, owner, left); ok {
			t.Error("a result is there too long")
		}
		if _, ok := readAll(s, owner, read); !ok {
			t.Error("a result that was read is gone")
		}
		<-time.After(resultLifetime + time.Second)
		synctest.Wait()
		if s.bytes != 0 || len(s.principals) != 0 || s.sweep != nil {
			t.Errorf("%d bytes and %v are left", s.bytes, s.principals)
		}
		if _, ok := readAll(s, owner, mustKeep(t, s, owner, "new")); !ok || s.sweep == nil {
			t.Error("the store does not work after all results expired")
		}
	})
}

func TestResultsEndWithTheirSession(t *testing.T) {
	s := openStore(t)
	one, two := ownerNamed("ada", "s1"), ownerNamed("ada", "s2")
	first, second := mustKeep(t, s, one, "1"), mustKeep(t, s, two, "2")
	s.EndSession(drawbridge.Caller{Principal: "bob", Session: "s1"})
	s.EndSession(drawbridge.Caller{Principal: "ada"})
	if _, ok := readAll(s, one, first); !ok {
		t.Error("the end of another session removed a result")
	}
	s.EndSession(drawbridge.Caller{Principal: "ada", Session: "s1"})
	_, gone := readAll(s, one, first)
	_, stays := readAll(s, two, second)
	if gone || !stays {
		t.Errorf("after the end: %v; another session: %v", gone, stays)
	}
	s.EndSession(drawbridge.Caller{Principal: "ada", Session: "s2"})
	if s.bytes != 0 || len(s.principals) != 0 {
		t.Errorf("%d bytes, %v are left", s.bytes, s.principals)
	}
	s.Close()
	if _, _, err := s.keep(one, "", "late", resultOrigin{}); err == nil {
		t.Error("a closed store keeps results")
	}
}

func TestTheLeastRecentlyUsedResultGoes(t *testing.T) {
	s, owner := openStore(t), ownerNamed("ada", "s")
	for range maxOwnerResults {
		mustKeep(t, s, owner, "x")
	}
	readAll(s, owner, "r1")
	mustKeep(t, s, owner, "one more")
	for id, want := range map[string]bool{"r1": true, "r2": false, "r3": true, "r65": true} {
		if _, ok := readAll(s, owner, id); ok != want {
			t.Errorf("%s: %v, want %v", id, ok, want)
		}
	}
	mustKeep(t, s, owner, strings.Repeat("x", maxOwnerBytes-4*resultOverhead-markDistance*200))
	if o := s.find(owner); o.bytes > maxOwnerBytes || len(o.byID) == 1 {
		t.Errorf("%d results with %d bytes", len(o.byID), o.bytes)
	}
	if _, _, err := s.keep(owner, "", strings.Repeat("x", maxOwnerBytes), resultOrigin{}); err == nil {
		t.Error("a result larger than all results of a session is kept")
	}
	for range 10_000 {
		mustKeep(t, s, owner, "x")
	}
	if o := s.find(owner); len(o.byID) != maxOwnerResults || o.bytes != s.bytes ||
		o.used.Len() != maxOwnerResults || s.principals["ada"].used.Len() != maxOwnerResults {
		t.Errorf("%d results, %d bytes of %d", len(o.byID), o.bytes, s.bytes)
	}
}

// TestOnePrincipalDoesNotPushOutAnother fills the store by many sessions of one principal.
func TestOnePrincipalDoesNotPushOutAnother(t *testing.T) {
	s, quiet := openStore(t), ownerNamed("ada", "s")
	id := mustKeep(t, s, quiet, "small")
	large := strings.Repeat("x", maxOwnerBytes/2)
	for i := range 2 * maxStoreBytes / len(large) {
		mustKeep(t, s, ownerNamed("bob", fmt.Sprint(i)), large)
	}
	if _, ok := readAll(s, quiet, id); !ok || s.bytes > maxStoreBytes {
		t.Errorf("the result of another: %v; %d bytes", ok, s.bytes)
	}
	eve := ownerNamed("eve", "s")
	mustKeep(t, s, eve, large)
	if _, ok := readAll(s, eve, "r1"); !ok || s.bytes > maxStoreBytes || s.principals["eve"].bytes < len(large) {
		t.Errorf("the result of a third: %v; %d bytes", ok, s.bytes)
	}
	for i := range 2 * maxStoreBytes / resultOverhead {
		mustKeep(t, s, ownerNamed("bob", fmt.Sprint("more", i)), "x")
	}
	if _, ok := readAll(s, quiet, id); !ok || s.bytes > maxStoreBytes {
		t.Errorf("the result of another: %v; %d bytes", ok, s.bytes)
	}
}

func TestRightsAreAskedAtEachRead(t *testing.T) {
	s, owner := openStore(t), ownerNamed("ada", "s")
	tools := []drawbridge.CardName{"x__a", "x__b"}
	id, _, err := s.keep(owner, "", "text", resultOrigin{tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	var asked []drawbridge.CardName
	allowed := true
	read := func() bool {
		_, _, _, ok := s.read(owner, id, 0, 1, func(names []drawbridge.CardName) bool {
			asked = names
			return allowed
		})
		return ok
	}
	if !read() || !cmp.Equal(asked, tools) {
		t.Errorf("asked for %v", asked)
	}
	if allowed = false; read() {
		t.Error("read without the right")
	}
}

// TestIDsOfARepeatedRun keeps results under the ids that they had before.
func TestIDsOfARepeatedRun(t *testing.T) {
	s, owner := openStore(t), ownerNamed("ada", "s")
	for _, step := range []struct{ id, text, want, kept string }{
		{"r7", "seven", "r7", "seven"}, {"", "new", "r8", "new"}, {"r3", "three", "r3", "three"}, {"", "newer", "r9", "newer"},
		{"r7", "another", "r7", "seven"}, // the process did not end: the first one is there
	} {
		id, _, err := s.keep(owner, step.id, step.text, resultOrigin{})
		if text, _ := readAll(s, owner, id); id != step.want || text != step.kept || err != nil {
			t.Errorf("%+v: %s is %q, %v", step, id, text, err)
		}
	}
	one, two := NewResultStore(), NewResultStore()
	defer one.Close()
	defer two.Close()
	if a, b := mustKeep(t, one, owner, "x"), mustKeep(t, two, owner, "x"); a == b {
		t.Errorf("two processes begin with the id %s", a)
	}
}

func TestPartsOfAText(t *testing.T) {
	for _, text := range []string{"", "abc", strings.Repeat("aé€😀", 3000), strings.Repeat("\xff\xfe", 2000), strings.Repeat("x", 2*markDistance)} {
		indexed, runes := newIndexedText(text), []rune(text)
		if indexed.length != len(runes) {
			t.Fatalf("%d characters, want %d", indexed.length, len(runes))
		}
		for _, at := range []int{-1, 0, 1, markDistance - 1, markDistance, markDistance + 1, len(runes) - 1, len(runes), len(runes) + 1, 1 << 62} {
			for _, size := range []int{-1, 0, 1, 7, markDistance, 3 * markDistance, 1 << 62} {
				want := ""
				if at >= 0 && at < len(runes) && size > 0 {
					want = string(runes[at:min(len(runes), at+min(size, len(runes)))])
				}
				if got := string([]rune(indexed.part(at, size))); got != want {
					t.Fatalf("part(%d, %d) of %d characters: %.40q, want %.40q", at, size, len(runes), got, want)
				}
			}
		}
	}
}
