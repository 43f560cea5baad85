package deck

import (
	"bytes"
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
// attacker's input. So the deck hands out an envelope: the server's state, when it expires, and a MAC over both and over
// the request it belongs to (who asked which server for what, with which arguments). What the MAC covers besides need
// not travel: the retry says it again.

// No key lasts: the one that seals an envelope is derived from a master key and from the hour of the envelope's expiry,
// so that keys change with time and nobody keeps them. Of several master keys the first seals and all open.

const (
	stateVersion = 2
	// stateLife is how long a person has to answer what a server asked.
	stateLife = 15 * time.Minute
	// stateHead is the version, the expiry in Unix seconds, and the MAC.
	stateHead = 1 + 8 + sha256.Size
	// stateEpoch is how many seconds of expiry share a key.
	stateEpoch = 3600
)

// sealer makes and opens the envelopes, and the tickets of ticket.go.
type sealer struct {
	// keys are the master keys, tickets what is derived from each for tickets.
	keys, tickets [][]byte
	now           func() time.Time
}

// newSealer makes a sealer of these master keys, or of one of its own where there are none.
func newSealer(keys [][]byte, now func() time.Time) sealer {
	if len(keys) == 0 {
		own := make([]byte, 32)
		rand.Read(own) // never fails: see its documentation
		keys = [][]byte{own}
	}
	s := sealer{keys: keys, now: now}
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

// request is what a state belongs to.
type request struct {
	principal string
	server    drawbridge.ServerID
	method    string
	// own is the tool's or prompt's own name, or the resource's own URI.
	own string
	// arguments may be nil.
	arguments json.RawMessage
}

// seal makes the envelope of a state: URL-safe Base64, as a JSON string.
func (s sealer) seal(state json.RawMessage, r request) json.RawMessage {
	out := make([]byte, stateHead, stateHead+len(state))
	out[0] = stateVersion
	binary.BigEndian.PutUint64(out[1:], uint64(s.now().Add(stateLife).Unix()))
	copy(out[9:], stateMAC(s.keys[0], out[1:9], state, r))
	return wire.Quote(base64.RawURLEncoding.EncodeToString(append(out, state...)))
}

var (
	errStateForeign = errors.New("it was not given out for this request")
	errStateExpired = errors.New("it has expired")
)

// open gives the state that the envelope holds, if it was sealed for this request and is fresh.
func (s sealer) open(envelope json.RawMessage, r request) (json.RawMessage, error) {
	text, ok := wire.Text(envelope)
	if !ok {
		return nil, errStateForeign
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < stateHead || b[0] != stateVersion {
		return nil, errStateForeign
	}
	expiry, state := b[1:9], b[stateHead:]
	if !slices.ContainsFunc(s.keys, func(key []byte) bool {
		return hmac.Equal(b[9:stateHead], stateMAC(key, expiry, state, r))
	}) {
		return nil, errStateForeign
	}
	if s.now().Unix() > int64(binary.BigEndian.Uint64(expiry)) {
		return nil, errStateExpired
	}
	return state, nil
}

// stateMAC covers all that must not change.
func stateMAC(master, expiry, state []byte, r request) []byte {
	epoch := binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(expiry)/stateEpoch)
	h := hmac.New(sha256.New, derive(master, "request state", epoch))
	h.Write([]byte{stateVersion})
	writeParts(h, expiry, state, []byte(r.principal), []byte(r.server), []byte(r.method), []byte(r.own), canonical(r.arguments))
	return h.Sum(nil)
}

// canonical writes a JSON value so that two values which mean the same are the same bytes: members sorted, no blanks. A
// caller that writes its arguments anew for the retry, and a server that lists its tools in another order of members,
// say the same thing as before. Numbers stay as they are written.
func canonical(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}
