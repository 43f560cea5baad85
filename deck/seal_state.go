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

// A modern server may answer a call with input_required and a requestState. The caller then retries the call with the
// required input, and sends the state back. A caller could change the state, or send it with another request; the
// specification tells servers to treat it as untrusted input. So the deck sends the caller an envelope instead of the
// state. The envelope contains the server's state, an expiry time, and a MAC over both and over the request (principal,
// server, method, name, arguments). The request itself is not in the envelope, because the retry repeats it.

// The key of the MAC is derived from a master key and the hour of the expiry time. So it changes every hour, and no key
// other than the master keys is stored. Envelopes are sealed with the first master key, and can be opened with every
// master key.

const (
	stateVersion = 2
	// StateLife is how long an envelope is valid. A person must answer a server's request for input within this time.
	StateLife = 15 * time.Minute
	// stateHeaderLen is the length in bytes of the envelope without the state: the version, the expiry in Unix seconds,
	// and the MAC.
	stateHeaderLen = 1 + 8 + sha256.Size
	// stateEpoch is the length in seconds of a key period. Envelopes whose expiry times are in the same period have the
	// same key.
	stateEpoch = 3600
)

// A tokenSealer seals and opens the values that callers store and send back: request states, task IDs and cursors. It
// is safe for concurrent use.
type tokenSealer struct {
	// keys are the master keys. idKeys are the keys for IDs, derived from the master keys.
	keys, idKeys [][]byte
	now          func() time.Time
}

// newTokenSealer returns a sealer with these master keys, or with one random key if keys is empty. It seals with the
// first key, and opens with every key.
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

// deriveKey returns a key for one purpose, derived from a master key. label and salt identify the purpose.
func deriveKey(master []byte, label string, salt []byte) []byte {
	h := hmac.New(sha256.New, master)
	hashParts(h, []byte("drawbridge "+label), salt)
	return h.Sum(nil)
}

// hashParts writes the parts to h, each preceded by its length. So two different lists of parts never result in the
// same hash input.
func hashParts(h hash.Hash, parts ...[]byte) {
	var size [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
}

// A stateBinding identifies the request for which a state is sealed. The state can be opened only with an equal
// binding.
type stateBinding struct {
	// Principal is the principal that called Method at Server. Own is the server's own name of the tool or prompt, or
	// its own URI of the resource.
	Principal string
	Server    drawbridge.ServerID
	Method    string
	Own       string
	// Arguments may be nil. They are compared in canonical form.
	Arguments json.RawMessage
}

// sealState returns the envelope for a state, as a JSON string in URL-safe Base64. The envelope is valid for StateLife,
// and only for the request r.
func (s tokenSealer) sealState(state json.RawMessage, r stateBinding) json.RawMessage {
	out := make([]byte, stateHeaderLen, stateHeaderLen+len(state))
	out[0] = stateVersion
	binary.BigEndian.PutUint64(out[1:], uint64(s.now().Add(StateLife).Unix()))
	copy(out[9:], stateMAC(s.keys[0], out[1:9], state, r))
	return rawjson.Quote(base64.RawURLEncoding.EncodeToString(append(out, state...)))
}

// sealResultState returns the result with its request state replaced by an envelope. A result without a request state
// is returned unchanged. To find this out, it first searches for a substring, which is much cheaper than parsing a
// large result.
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

// The errors of openState.
var (
	errForeignState = errors.New("it was not given out for this request")
	errExpiredState = errors.New("it has expired")
)

// openState returns the state in an envelope, if the envelope was sealed for the request r and has not expired.
// Otherwise it returns errForeignState or errExpiredState.
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

// stateMAC returns the MAC over the state, the expiry and the binding r. Its key is derived from the master key and the
// expiry.
func stateMAC(master, expiry, state []byte, r stateBinding) []byte {
	epoch := binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(expiry)/stateEpoch)
	h := hmac.New(sha256.New, deriveKey(master, "request state", epoch))
	h.Write([]byte{stateVersion})
	hashParts(h, expiry, state, []byte(r.Principal), []byte(r.Server), []byte(r.Method), []byte(r.Own),
		rawjson.Canonical(r.Arguments))
	return h.Sum(nil)
}
