// Package seal makes what passes through callers and must come back as it was: the request states of servers, the ids of
// their tasks, and cursors.
//
// It promises that nothing opens but what was sealed with one of the keys, for the same principal and the same use; that
// a request state opens only for its own request and while it is fresh; and that an id is the same for the same task
// every time. It hides nothing: who has a sealed thing can read it. No table and no clean-up is needed to open one.
package seal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A server of the modern generation may answer a call with input_required and a requestState, which the caller sends
// back with its retry. Between the two the state is in the hands of the caller, and the protocol says to treat it as an
// attacker's input. So a caller gets an envelope: the server's state, when it expires, and a MAC over both and over
// the request it belongs to (who asked which server for what, with which arguments). What the MAC covers besides need
// not travel: the retry says it again.

// No key lasts: the one that seals an envelope is derived from a master key and from the hour of the envelope's expiry,
// so that keys change with time and nobody keeps them. Of several master keys the first seals and all open.

const (
	stateVersion = 2
	// StateLife is how long a person has to answer what a server asked.
	StateLife = 15 * time.Minute
	// stateHead is the version, the expiry in Unix seconds, and the MAC.
	stateHead = 1 + 8 + sha256.Size
	// stateEpoch is how many seconds of expiry share a key.
	stateEpoch = 3600
)

// A Sealer makes and opens envelopes and tickets. Its methods may be called from several goroutines.
type Sealer struct {
	// keys are the master keys, tickets what is derived from each for tickets.
	keys, tickets [][]byte
	now           func() time.Time
}

// New makes a sealer of these master keys, or of one of its own where there are none. The first key seals, all open. Now
// is the clock.
func New(keys [][]byte, now func() time.Time) Sealer {
	if len(keys) == 0 {
		own := make([]byte, 32)
		rand.Read(own) // never fails: see its documentation
		keys = [][]byte{own}
	}
	s := Sealer{keys: keys, now: now}
	for _, key := range keys {
		s.tickets = append(s.tickets, derive(key, "ticket", nil))
	}
	return s
}

// derive makes the key of one use out of a master key. Uses differ by label or by salt; the label is after its length, as
// all that is authenticated here.
func derive(master []byte, label string, salt []byte) []byte {
	h := hmac.New(sha256.New, master)
	writeParts(h, []byte("drawbridge "+label), salt)
	return h.Sum(nil)
}

// writeParts writes each part after its length, so that no two lists of parts read the same.
func writeParts(h hash.Hash, parts ...[]byte) {
	var size [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
}

// A Request is what a state belongs to.
type Request struct {
	// Principal asks Server by Method for Own: the tool's or prompt's own name, or the resource's own URI.
	Principal string
	Server    drawbridge.ServerID
	Method    string
	Own       string
	// Arguments may be nil. Two objects that mean the same are the same.
	Arguments json.RawMessage
}

// Seal makes the envelope of a state, which lasts for StateLife: URL-safe Base64, as a JSON string.
func (s Sealer) Seal(state json.RawMessage, r Request) json.RawMessage {
	out := make([]byte, stateHead, stateHead+len(state))
	out[0] = stateVersion
	binary.BigEndian.PutUint64(out[1:], uint64(s.now().Add(StateLife).Unix()))
	copy(out[9:], stateMAC(s.keys[0], out[1:9], state, r))
	return wire.Quote(base64.RawURLEncoding.EncodeToString(append(out, state...)))
}

// Result seals the request state of a result that asks for more. The search for the word is much cheaper than reading a large
// result.
func (s Sealer) Result(result json.RawMessage, r Request) json.RawMessage {
	if !wire.MayHave(result, `"requestState"`) {
		return result
	}
	state := wire.Get(result, "requestState")
	if state == nil || string(state) == "null" {
		return result
	}
	return wire.Apply(result, wire.Put(s.Seal(state, r), "requestState"))
}

// Why an envelope does not open.
var (
	ErrForeign = errors.New("it was not given out for this request")
	ErrExpired = errors.New("it has expired")
)

// Open gives the state that the envelope holds, if it was sealed for this request and is fresh. The error is ErrForeign or
// ErrExpired.
func (s Sealer) Open(envelope json.RawMessage, r Request) (json.RawMessage, error) {
	text, ok := wire.Text(envelope)
	if !ok {
		return nil, ErrForeign
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < stateHead || b[0] != stateVersion {
		return nil, ErrForeign
	}
	expiry, state := b[1:9], b[stateHead:]
	if !slices.ContainsFunc(s.keys, func(key []byte) bool {
		return hmac.Equal(b[9:stateHead], stateMAC(key, expiry, state, r))
	}) {
		return nil, ErrForeign
	}
	if s.now().Unix() > int64(binary.BigEndian.Uint64(expiry)) {
		return nil, ErrExpired
	}
	return state, nil
}

// stateMAC covers all that must not change.
func stateMAC(master, expiry, state []byte, r Request) []byte {
	epoch := binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(expiry)/stateEpoch)
	h := hmac.New(sha256.New, derive(master, "request state", epoch))
	h.Write([]byte{stateVersion})
	writeParts(h, expiry, state, []byte(r.Principal), []byte(r.Server), []byte(r.Method), []byte(r.Own), wire.Canonical(r.Arguments))
	return h.Sum(nil)
}
