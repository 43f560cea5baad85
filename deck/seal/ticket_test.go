package seal

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestATicketOpensForItsPrincipalAlone(t *testing.T) {
	s := New([][]byte{[]byte("new"), []byte("old")}, time.Now)
	mine := Ticket{ModernTask, "github", "task-1"}
	text := s.Ticket("ada", mine)
	if again := s.Ticket("ada", mine); again != text {
		t.Errorf("the same task has two tickets: %s and %s", text, again)
	}
	if got, ok := s.OpenTicket("ada", text, ModernTask); !ok || got != mine {
		t.Errorf("open = %v, %v; want %v", got, ok, mine)
	}
	old := New([][]byte{[]byte("old")}, time.Now).Ticket("ada", mine)
	if _, ok := s.OpenTicket("ada", old, ModernTask); !ok || old == text {
		t.Error("a ticket of an earlier key does not open, or is no other")
	}

	raw, _ := base64.RawURLEncoding.DecodeString(text)
	for what, forged := range map[string]string{
		"the server's own id": "task-1",
		"nothing":             "",
		"a line break":        text[:8] + "\n" + text[8:],
		"padding":             text + "=",
		"another server":      base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw), "github", "gitlab", 1))),
		"another task":        base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw), "task-1", "task-2", 1))),
		"a shifted border":    base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw), "\x06github", "\x07github", 1))),
		"too short a text":    base64.RawURLEncoding.EncodeToString(raw[:ticketHead-1]),
		"a stranger's key":    New(nil, time.Now).Ticket("ada", mine),
	} {
		if got, ok := s.OpenTicket("ada", forged, ModernTask); ok {
			t.Errorf("%s opens as %v", what, got)
		}
	}
	if _, ok := s.OpenTicket("bob", text, ModernTask); ok {
		t.Error("it opens for another principal")
	}
	if _, ok := s.OpenTicket("ada", text, LegacyTask); ok {
		t.Error("it opens for another use")
	}
}

// FuzzOpenTicket checks that nothing opens but what was written, and that what is believed without its MAC can be written
// again.
func FuzzOpenTicket(f *testing.F) {
	s := New([][]byte{[]byte("key")}, time.Now)
	real := s.Ticket("ada", Ticket{LegacyTask, "s", "1"})
	f.Add(real)
	f.Add("")
	f.Add(real[:len(real)-1])
	f.Add(base64.RawURLEncoding.EncodeToString(append(make([]byte, ticketHead-1), 255)))
	f.Fuzz(func(t *testing.T, text string) {
		parsed, ok := parseTicket(text)
		if _, opens := s.OpenTicket("ada", text, LegacyTask); opens != (text == real) {
			t.Errorf("%q opens: %v", text, opens)
		}
		if !ok {
			return
		}
		again, ok := s.OpenTicket("bob", s.Ticket("bob", parsed), parsed.Kind)
		if !ok || again != parsed {
			t.Errorf("%v comes back as %v, %v", parsed, again, ok)
		}
	})
}

func TestWhatIsHandedOutIsRememberedWithinBounds(t *testing.T) {
	var h Held
	nth := func(i int) Ticket { return Ticket{LegacyTask, "s", fmt.Sprint(i)} }
	for i := range maxHeld + 2 {
		h.Add("greedy", nth(i), "t")
	}
	if _, ok := h.Ticket("greedy", nth(1)); ok || len(h.order["greedy"]) != maxHeld {
		t.Errorf("%d tasks of one principal are remembered, the oldest too: %v", len(h.order["greedy"]), ok)
	}
	for p := 0; h.all < maxHeldAll; p++ {
		for i := range maxHeld / 2 {
			h.Add(fmt.Sprint("p", p), nth(i), "t")
		}
	}
	h.Add("late", nth(0), "mine")
	if text, ok := h.Ticket("late", nth(0)); !ok || text != "mine" || h.all != maxHeldAll || len(h.order["greedy"]) != maxHeld-1 {
		t.Errorf("all: %d, of the principal with most: %d; the last one: %q, %v", h.all, len(h.order["greedy"]), text, ok)
	}
	h.Forget("s")
	if h.all != 0 || len(h.order) != 0 || len(h.holders) != 0 {
		t.Errorf("of a server that is gone %d tasks stay", h.all)
	}
}
