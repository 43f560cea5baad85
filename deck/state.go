package deck

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A server of the modern generation may answer a call with input_required and a requestState, which the caller sends
// back with its retry. Between the two the state is in the hands of the caller, and the protocol says to treat it as an
// attacker's input. So the deck hands out an envelope: the server's state, when it expires, and a MAC over both and over
// the request it belongs to (who asked which server for what, with which arguments). What the MAC covers besides need
// not travel: the retry says it again.

const (
	stateVersion = 1
	// stateLife is how long a person has to answer what a server asked.
	stateLife = 15 * time.Minute
	// stateHead is the version, the expiry in Unix seconds, and the MAC.
	stateHead = 1 + 8 + sha256.Size
)

// sealer makes and opens the envelopes.
type sealer struct {
	key []byte
	now func() time.Time
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
	copy(out[9:], s.mac(out[1:9], state, r))
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
	if !hmac.Equal(b[9:stateHead], s.mac(expiry, state, r)) {
		return nil, errStateForeign
	}
	if s.now().Unix() > int64(binary.BigEndian.Uint64(expiry)) {
		return nil, errStateExpired
	}
	return state, nil
}

// mac covers all that must not change. Each part is written after its length, so that no two requests read the same.
func (s sealer) mac(expiry, state []byte, r request) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte{stateVersion})
	for _, part := range [][]byte{
		expiry, state, []byte(r.principal), []byte(r.server), []byte(r.method), []byte(r.own), canonical(r.arguments),
	} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
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
