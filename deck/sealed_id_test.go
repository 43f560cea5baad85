package deck

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestATicketOpensForItsPrincipalAlone(t *testing.T) {
	s := newTokenSealer([][]byte{[]byte("new"), []byte("old")}, time.Now)
	mine := sealedID{modernTaskID, "github", "task-1"}
	text := s.sealID("ada", mine)
	if again := s.sealID("ada", mine); again != text {
		t.Errorf("the same task has two tickets: %s and %s", text, again)
	}
	if got, ok := s.openID("ada", text, modernTaskID); !ok || got != mine {
		t.Errorf("open = %v, %v; want %v", got, ok, mine)
	}
	old := newTokenSealer([][]byte{[]byte("old")}, time.Now).sealID("ada", mine)
	if _, ok := s.openID("ada", old, modernTaskID); !ok || old == text {
		t.Error("a ticket of an earlier key does not open, or is no other")
	}

	raw, _ := base64.RawURLEncoding.DecodeString(text)
	for what, forged := range map[string]string{
		"the server's own id": "task-1",
		"nothing":             "",
		"a line break":        text[:8] + "\n" + text[8:],
		"padding":             text + "=",
		"another server": base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw),
			"github", "gitlab", 1))),
		"another task": base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw),
			"task-1", "task-2", 1))),
		"a shifted border": base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw), "\x06github",
			"\x07github", 1))),
		"too short a text": base64.RawURLEncoding.EncodeToString(raw[:sealedIDHeaderLen-1]),
		"a stranger's key": newTokenSealer(nil, time.Now).sealID("ada", mine),
	} {
		if got, ok := s.openID("ada", forged, modernTaskID); ok {
			t.Errorf("%s opens as %v", what, got)
		}
	}
	if _, ok := s.openID("bob", text, modernTaskID); ok {
		t.Error("it opens for another principal")
	}
	if _, ok := s.openID("ada", text, legacyTaskID); ok {
		t.Error("it opens for another use")
	}
}

// FuzzOpenTicket checks that nothing opens but what was written, and that what is believed without its MAC can be
// written again.
func FuzzOpenTicket(f *testing.F) {
	s := newTokenSealer([][]byte{[]byte("key")}, time.Now)
	real := s.sealID("ada", sealedID{legacyTaskID, "s", "1"})
	f.Add(real)
	f.Add("")
	f.Add(real[:len(real)-1])
	f.Add(base64.RawURLEncoding.EncodeToString(append(make([]byte, sealedIDHeaderLen-1), 255)))
	f.Fuzz(func(t *testing.T, text string) {
		parsed, ok := parseSealedID(text)
		if _, opens := s.openID("ada", text, legacyTaskID); opens != (text == real) {
			t.Errorf("%q opens: %v", text, opens)
		}
		if !ok {
			return
		}
		again, ok := s.openID("bob", s.sealID("bob", parsed), parsed.Kind)
		if !ok || again != parsed {
			t.Errorf("%v comes back as %v, %v", parsed, again, ok)
		}
	})
}

func TestWhatIsHandedOutIsRememberedWithinBounds(t *testing.T) {
	var h taskHolders
	nth := func(i int) sealedID { return sealedID{legacyTaskID, "s", fmt.Sprint(i)} }
	for i := range maxHeldTasks + 2 {
		h.Add("greedy", nth(i), "t")
	}
	if _, ok := h.sealedIDOf("greedy", nth(1)); ok || len(h.oldestFirst["greedy"]) != maxHeldTasks {
		t.Errorf("%d tasks of one principal are remembered, the oldest too: %v", len(h.oldestFirst["greedy"]), ok)
	}
	for p := 0; h.total < maxHeldTasksTotal; p++ {
		for i := range maxHeldTasks / 2 {
			h.Add(fmt.Sprint("p", p), nth(i), "t")
		}
	}
	h.Add("late", nth(0), "mine")
	if text, ok := h.sealedIDOf("late", nth(0)); !ok || text != "mine" || h.total != maxHeldTasksTotal ||
		len(h.oldestFirst["greedy"]) != maxHeldTasks-1 {
		t.Errorf("all: %d, of the principal with most: %d; the last one: %q, %v", h.total,
			len(h.oldestFirst["greedy"]), text, ok)
	}
	h.ForgetServer("s")
	if h.total != 0 || len(h.oldestFirst) != 0 || len(h.holders) != 0 {
		t.Errorf("of a server that is gone %d tasks stay", h.total)
	}
}
