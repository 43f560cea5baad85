package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

func TestRequestStateOpensForItsRequestAlone(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := noon
	s := New([][]byte{[]byte("key")}, func() time.Time { return clock })
	mine := Request{Principal: "ada", Server: "github", Method: "tools/call", Own: "merge", Arguments: json.RawMessage(`{"a":1,"b":2}`)}
	envelope := s.Seal(json.RawMessage(`"round 1"`), mine)

	state, err := s.Open(envelope, mine)
	if string(state) != `"round 1"` || err != nil {
		t.Fatalf("open = %s, %v; want the state that was sealed", state, err)
	}

	rewritten := mine
	rewritten.Arguments = json.RawMessage(`{ "b": 2, "a": 1 }`)
	if _, err := s.Open(envelope, rewritten); err != nil {
		t.Errorf("the same arguments in another order: %v", err)
	}

	for what, change := range map[string]func(*Request){
		"another principal": func(r *Request) { r.Principal = "bob" },
		"another server":    func(r *Request) { r.Server = "gitlab" },
		"another method":    func(r *Request) { r.Method = "prompts/get" },
		"another tool":      func(r *Request) { r.Own = "delete" },
		"other arguments":   func(r *Request) { r.Arguments = json.RawMessage(`{"a":1,"b":3}`) },
		"no arguments":      func(r *Request) { r.Arguments = nil },
		"shifted parts":     func(r *Request) { r.Method, r.Own = "tools/callm", "erge" },
	} {
		r := mine
		change(&r)
		if state, err := s.Open(envelope, r); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: open = %s, %v; want %v", what, state, err, ErrForeign)
		}
	}

	other := New([][]byte{[]byte("another key")}, s.now)
	if _, err := other.Open(envelope, mine); !errors.Is(err, ErrForeign) {
		t.Errorf("another key: %v", err)
	}
	clock = noon.Add(StateLife)
	if _, err := s.Open(envelope, mine); err != nil {
		t.Errorf("at the last moment: %v", err)
	}
	clock = noon.Add(StateLife + time.Second)
	if _, err := s.Open(envelope, mine); !errors.Is(err, ErrExpired) {
		t.Errorf("a second too late: %v, want %v", err, ErrExpired)
	}
}

func TestKeysOfRequestStatesChangeWithTime(t *testing.T) {
	r := Request{Principal: "ada", Server: "s", Method: "tools/call", Own: "t"}
	state, early, late := json.RawMessage(`"x"`), []byte{7: 1}, []byte{5: 1, 7: 0}
	if key := []byte("key"); bytes.Equal(stateMAC(key, early, state, r), stateMAC(key, late, state, r)) {
		t.Error("the same MAC at two times")
	}
	if bytes.Equal(derive([]byte("key"), "request state", early), derive([]byte("key"), "request state", late)) ||
		bytes.Equal(derive([]byte("key"), "a", nil), derive([]byte("key"), "b", nil)) {
		t.Error("two uses share a key")
	}
	// A new master key takes the place of an old one while states of the old one are on their way.
	before := New([][]byte{[]byte("old")}, time.Now)
	after := New([][]byte{[]byte("new"), []byte("old")}, time.Now)
	if got, err := after.Open(before.Seal(state, r), r); string(got) != `"x"` || err != nil {
		t.Errorf("a state of the old key: %s, %v", got, err)
	}
	if _, err := before.Open(after.Seal(state, r), r); !errors.Is(err, ErrForeign) {
		t.Errorf("the old key alone opens a state of the new one: %v", err)
	}
}

// FuzzOpenState checks that nothing opens but what was sealed: any envelope either fails, or is the one (line breaks are
// no part of Base64).
func FuzzOpenState(f *testing.F) {
	s := New([][]byte{[]byte("key")}, func() time.Time { return time.Unix(1_800_000_000, 0) })
	r := Request{Principal: "ada", Server: "s", Method: "tools/call", Own: "t"}
	sealed := s.Seal(json.RawMessage(`"x"`), r)
	text, _ := wire.Text(sealed)
	f.Add(text)
	f.Add("")
	f.Add(base64.RawURLEncoding.EncodeToString(make([]byte, stateHead)))
	f.Fuzz(func(t *testing.T, envelope string) {
		state, err := s.Open(wire.Quote(envelope), r)
		joined := strings.NewReplacer("\r", "", "\n", "").Replace(envelope)
		if (err == nil) != (joined == text) {
			t.Errorf("open(%q) = %q, %v", envelope, state, err)
		}
	})
}
