package deck

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

func TestRequestStateOpensForItsRequestAlone(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := noon
	s := newTokenSealer([][]byte{[]byte("key")}, func() time.Time { return clock })
	mine := stateBinding{Principal: "ada", Server: "github", Method: "tools/call", Own: "merge",
		Arguments: json.RawMessage(`{"a":1,"b":2}`)}
	envelope := s.sealState(json.RawMessage(`"round 1"`), mine)

	state, err := s.openState(envelope, mine)
	if string(state) != `"round 1"` || err != nil {
		t.Fatalf("open = %s, %v; want the state that was sealed", state, err)
	}

	rewritten := mine
	rewritten.Arguments = json.RawMessage(`{ "b": 2, "a": 1 }`)
	if _, err := s.openState(envelope, rewritten); err != nil {
		t.Errorf("the same arguments in another order: %v", err)
	}

	for what, change := range map[string]func(*stateBinding){
		"another principal": func(r *stateBinding) { r.Principal = "bob" },
		"another server":    func(r *stateBinding) { r.Server = "gitlab" },
		"another method":    func(r *stateBinding) { r.Method = "prompts/get" },
		"another tool":      func(r *stateBinding) { r.Own = "delete" },
		"other arguments":   func(r *stateBinding) { r.Arguments = json.RawMessage(`{"a":1,"b":3}`) },
		"no arguments":      func(r *stateBinding) { r.Arguments = nil },
		"shifted parts":     func(r *stateBinding) { r.Method, r.Own = "tools/callm", "erge" },
	} {
		r := mine
		change(&r)
		if state, err := s.openState(envelope, r); !errors.Is(err, errForeignState) {
			t.Errorf("%s: open = %s, %v; want %v", what, state, err, errForeignState)
		}
	}

	other := newTokenSealer([][]byte{[]byte("another key")}, s.now)
	if _, err := other.openState(envelope, mine); !errors.Is(err, errForeignState) {
		t.Errorf("another key: %v", err)
	}
	clock = noon.Add(StateLife)
	if _, err := s.openState(envelope, mine); err != nil {
		t.Errorf("at the last moment: %v", err)
	}
	clock = noon.Add(StateLife + time.Second)
	if _, err := s.openState(envelope, mine); !errors.Is(err, errExpiredState) {
		t.Errorf("a second too late: %v, want %v", err, errExpiredState)
	}
}

func TestKeysOfRequestStatesChangeWithTime(t *testing.T) {
	r := stateBinding{Principal: "ada", Server: "s", Method: "tools/call", Own: "t"}
	state, early, late := json.RawMessage(`"x"`), []byte{7: 1}, []byte{5: 1, 7: 0}
	if key := []byte("key"); bytes.Equal(stateMAC(key, early, state, r), stateMAC(key, late, state, r)) {
		t.Error("the same MAC at two times")
	}
	if bytes.Equal(deriveKey([]byte("key"), "request state", early), deriveKey([]byte("key"), "request state", late)) ||
		bytes.Equal(deriveKey([]byte("key"), "a", nil), deriveKey([]byte("key"), "b", nil)) {
		t.Error("two uses share a key")
	}
	// A new master key takes the place of an old one while states of the old one are on their way.
	before := newTokenSealer([][]byte{[]byte("old")}, time.Now)
	after := newTokenSealer([][]byte{[]byte("new"), []byte("old")}, time.Now)
	if got, err := after.openState(before.sealState(state, r), r); string(got) != `"x"` || err != nil {
		t.Errorf("a state of the old key: %s, %v", got, err)
	}
	if _, err := before.openState(after.sealState(state, r), r); !errors.Is(err, errForeignState) {
		t.Errorf("the old key alone opens a state of the new one: %v", err)
	}
}

// FuzzOpenState checks that nothing opens but what was sealed: any envelope either fails, or is the one (line breaks
// are not part of Base64).
func FuzzOpenState(f *testing.F) {
	s := newTokenSealer([][]byte{[]byte("key")}, func() time.Time { return time.Unix(1_800_000_000, 0) })
	r := stateBinding{Principal: "ada", Server: "s", Method: "tools/call", Own: "t"}
	sealed := s.sealState(json.RawMessage(`"x"`), r)
	text, _ := rawjson.DecodeString(sealed)
	f.Add(text)
	f.Add("")
	f.Add(base64.RawURLEncoding.EncodeToString(make([]byte, stateHeaderLen)))
	f.Fuzz(func(t *testing.T, envelope string) {
		state, err := s.openState(rawjson.Quote(envelope), r)
		joined := strings.NewReplacer("\r", "", "\n", "").Replace(envelope)
		if (err == nil) != (joined == text) {
			t.Errorf("open(%q) = %q, %v", envelope, state, err)
		}
	})
}
