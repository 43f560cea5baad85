package deck

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
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
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
	// stateHeaderLen is the version, the expiry in Unix seconds, and the MAC.
	stateHeaderLen = 1 + 8 + sha256.Size
	// stateEpoch is how many seconds of expiry share a key.
	stateEpoch = 3600
)

// A tokenSealer makes and opens envelopes and tickets. Its methods may be called from several goroutines.
type tokenSealer struct {
	// keys are the master keys, tickets what is derived from each for tickets.
	keys, idKeys [][]byte
	now          func() time.Time
}

// newTokenSealer makes a sealer of these master keys, or of one of its own where there are none. The first key seals,
// all open. Now is the clock.
func newTokenSealer(keys [][]byte, now func() time.Time) tokenSealer {
	if len(keys) == 0 {
		own := make([]byte, 32)
		rand.Read(own) // never fails: see its documentation
		keys = [][]byte{own}
	}
	s := tokenSealer{keys: keys, now: now}
	for _, key := range keys {
		s.idKeys = append(s.idKeys, deriveKey(key, "ticket", nil))
	}
	return s
}

// deriveKey makes the key of one use out of a master key. Uses differ by label or by salt; the label is after its
// length, as all that is authenticated here.
func deriveKey(master []byte, label string, salt []byte) []byte {
	h := hmac.New(sha256.New, master)
	hashParts(h, []byte("drawbridge "+label), salt)
	return h.Sum(nil)
}

// hashParts writes each part after its length, so that no two lists of parts read the same.
func hashParts(h hash.Hash, parts ...[]byte) {
	var size [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
}

// A stateBinding is what a state belongs to.
type stateBinding struct {
	// Principal asks Server by Method for Own: the tool's or prompt's own name, or the resource's own URI.
	Principal string
	Server    drawbridge.ServerID
	Method    string
	Own       string
	// Arguments may be nil. Two objects that mean the same are the same.
	Arguments json.RawMessage
}

// sealState makes the envelope of a state, which lasts for StateLife: URL-safe Base64, as a JSON string.
func (s tokenSealer) sealState(state json.RawMessage, r stateBinding) json.RawMessage {
	out := make([]byte, stateHeaderLen, stateHeaderLen+len(state))
	out[0] = stateVersion
	binary.BigEndian.PutUint64(out[1:], uint64(s.now().Add(StateLife).Unix()))
	copy(out[9:], stateMAC(s.keys[0], out[1:9], state, r))
	return rawjson.Quote(base64.RawURLEncoding.EncodeToString(append(out, state...)))
}

// sealResultState seals the request state of a result that asks for more. The search for the word is much cheaper than
// reading a large result.
func (s tokenSealer) sealResultState(result json.RawMessage, r stateBinding) json.RawMessage {
	if !rawjson.MayContain(result, `"requestState"`) {
		return result
	}
	state := rawjson.Get(result, "requestState")
	if state == nil || string(state) == "null" {
		return result
	}
	return rawjson.Apply(result, rawjson.Put(s.sealState(state, r), "requestState"))
}

// Why an envelope does not open.
var (
	errForeignState = errors.New("it was not given out for this request")
	errExpiredState = errors.New("it has expired")
)

// openState gives the state that the envelope holds, if it was sealed for this request and is fresh. The error is
// errForeignState or errExpiredState.
func (s tokenSealer) openState(envelope json.RawMessage, r stateBinding) (json.RawMessage, error) {
	text, ok := rawjson.DecodeString(envelope)
	if !ok {
		return nil, errForeignState
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < stateHeaderLen || b[0] != stateVersion {
		return nil, errForeignState
	}
	expiry, state := b[1:9], b[stateHeaderLen:]
	if !slices.ContainsFunc(s.keys, func(key []byte) bool {
		return hmac.Equal(b[9:stateHeaderLen], stateMAC(key, expiry, state, r))
	}) {
		return nil, errForeignState
	}
	if s.now().Unix() > int64(binary.BigEndian.Uint64(expiry)) {
		return nil, errExpiredState
	}
	return state, nil
}

// stateMAC covers all that must not change.
func stateMAC(master, expiry, state []byte, r stateBinding) []byte {
	epoch := binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(expiry)/stateEpoch)
	h := hmac.New(sha256.New, deriveKey(master, "request state", epoch))
	h.Write([]byte{stateVersion})
	hashParts(h, expiry, state, []byte(r.Principal), []byte(r.Server), []byte(r.Method), []byte(r.Own),
		rawjson.Canonical(r.Arguments))
	return h.Sum(nil)
}
