package deck

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// A server names its tasks as it likes: two servers may use one name, and many can be guessed. So callers know a task
// by a ticket, which says whose task it is, and proves by a MAC that this deck, or one with the same key, gave it to
// this principal. A forged one, and one of another principal, is no ticket at all. It is made of nothing but what it
// says, so that no table is needed to find the server, and the same task always has the same ticket: in a list, in a
// notification, after a restart.

const (
	sealedIDVersion = 1
	sealedIDMACLen  = 16
	// sealedIDHeaderLen is the version, the kind, the MAC, and the length of the server's id.
	sealedIDHeaderLen = 2 + sealedIDMACLen + 1
)

// A idKind says what a ticket is for: nothing else opens with it.
type idKind byte

// The kinds.

const (
	// A task of one generation means nothing to a caller of the other one, who has other methods for it.
	legacyTaskID idKind = 'l'
	modernTaskID idKind = 'm'
	// A listCursorID is where a list of tasks goes on.
	listCursorID idKind = 'c'
)

// A sealedID leads to something of a server: Own is the server's word for it.
type sealedID struct {
	Kind   idKind
	Server drawbridge.ServerID
	Own    string
}

// sealID writes a ticket for a principal, in URL-safe Base64: it fits into a header as it is.
func (s tokenSealer) sealID(principal string, t sealedID) string {
	return t.encode(s.idKeys[0], principal)
}

func (t sealedID) encode(key []byte, principal string) string {
	out := make([]byte, 2, sealedIDHeaderLen+len(t.Server)+len(t.Own))
	out[0], out[1] = sealedIDVersion, byte(t.Kind)
	h := hmac.New(sha256.New, key)
	h.Write(out)
	hashParts(h, []byte(principal), []byte(t.Server), []byte(t.Own))
	out = append(out, h.Sum(nil)[:sealedIDMACLen]...)
	out = append(append(append(out, byte(len(t.Server))), t.Server...), t.Own...)
	return base64.RawURLEncoding.EncodeToString(out)
}

// openID reads a ticket that was written for this principal, by any of the keys.
func (s tokenSealer) openID(principal, text string, kind idKind) (sealedID, bool) {
	t, ok := parseSealedID(text)
	if !ok || t.Kind != kind {
		return sealedID{}, false
	}
	// The whole text is compared: Base64 has more than one way to write the same bytes.
	return t, slices.ContainsFunc(s.idKeys, func(key []byte) bool {
		return hmac.Equal([]byte(text), []byte(t.encode(key, principal)))
	})
}

// parseSealedID takes a ticket apart and believes it.
func parseSealedID(text string) (sealedID, bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < sealedIDHeaderLen || b[0] != sealedIDVersion {
		return sealedID{}, false
	}
	end := sealedIDHeaderLen + int(b[sealedIDHeaderLen-1])
	if end > len(b) {
		return sealedID{}, false
	}
	return sealedID{idKind(b[1]), drawbridge.ServerID(b[sealedIDHeaderLen:end]), string(b[end:])}, true
}
