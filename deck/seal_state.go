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

// A modern server may answer a call with input_required and a requestState, which the caller sends back with its retry.
// In the meantime the caller stores the state, and the specification tells servers to treat it as untrusted input. So
// the caller receives an envelope. It contains the server's state, its expiry, and a MAC over both and over the request
// (caller, server, method, arguments). The request itself is not in the envelope, because the retry repeats it.

// Keys are valid for a short time. The key of an envelope is derived from a master key and the hour of the expiry, so
// that keys change without being stored. The first master key seals, and every master key opens.

const (
	stateVersion = 2
	// StateLife is the time that a person has to answer a server's request for input.
	StateLife = 15 * time.Minute
	// stateHeaderLen is the length of the version, the expiry in Unix seconds, and the MAC.
	stateHeaderLen = 1 + 8 + sha256.Size
	// stateEpoch is the length in seconds of the period in which all expiries have the same key.
	stateEpoch = 3600
)

// A tokenSealer seals and opens request states and IDs. It is safe for concurrent use.
type tokenSealer struct {
	// keys are the master keys. idKeys are the keys for IDs, derived from the master keys.
	keys, idKeys [][]byte
	now          func() time.Time
}

// newTokenSealer returns a sealer with these master keys, or with a random key if there are none. The first key seals,
// and every key opens.
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

// deriveKey derives a key for one purpose from a master key. label and salt identify the purpose. Each part of the hash
// input is preceded by its length.
func deriveKey(master []byte, label string, salt []byte) []byte {
	h := hmac.New(sha256.New, master)
	hashParts(h, []byte("drawbridge "+label), salt)
	return h.Sum(nil)
}

// hashParts writes each part after its length, so that different lists of parts never have the same hash input.
func hashParts(h hash.Hash, parts ...[]byte) {
	var size [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
}

// A stateBinding is the request for which a state is sealed.
type stateBinding struct {
	// Principal calls Method on Server. Own is the server's own name of the tool or prompt, or its own URI of the
	// resource.
	Principal string
	Server    drawbridge.ServerID
	Method    string
	Own       string
	// Arguments may be nil. They are compared in canonical form.
	Arguments json.RawMessage
}

// sealState returns the envelope of a state as a JSON string in URL-safe Base64. The envelope is valid for StateLife.
func (s tokenSealer) sealState(state json.RawMessage, r stateBinding) json.RawMessage {
	out := make([]byte, stateHeaderLen, stateHeaderLen+len(state))
	out[0] = stateVersion
	binary.BigEndian.PutUint64(out[1:], uint64(s.now().Add(StateLife).Unix()))
	copy(out[9:], stateMAC(s.keys[0], out[1:9], state, r))
	return rawjson.Quote(base64.RawURLEncoding.EncodeToString(append(out, state...)))
}

// sealResultState seals the request state of a result that has one. It first searches for a substring, which is much
// cheaper than parsing a large result.
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

// openState returns the state in the envelope if the envelope was sealed for this request and has not expired.
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

// stateMAC returns the MAC of the state, its expiry and its binding.
func stateMAC(master, expiry, state []byte, r stateBinding) []byte {
	epoch := binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(expiry)/stateEpoch)
	h := hmac.New(sha256.New, deriveKey(master, "request state", epoch))
	h.Write([]byte{stateVersion})
	hashParts(h, expiry, state, []byte(r.Principal), []byte(r.Server), []byte(r.Method), []byte(r.Own),
		rawjson.Canonical(r.Arguments))
	return h.Sum(nil)
}
