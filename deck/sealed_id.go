package deck

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// Servers choose task ids freely: two servers may use the same id, and many ids can be guessed. So callers see a sealed
// id. It contains the server and the server's id, and a MAC proves that this deck, or one with the same key, issued it
// to this principal. Forged ids and ids of other principals do not open. A sealed id needs no table, and one task
// always has the same sealed id: in a list, in a notification, after a restart.

const (
	sealedIDVersion = 1
	sealedIDMACLen  = 16
	// sealedIDHeaderLen is the version, the kind, the MAC, and the length of the server's id.
	sealedIDHeaderLen = 2 + sealedIDMACLen + 1
)

// An idKind is the use of a sealed id. An id opens for its own use only.
type idKind byte

// The kinds.

const (
	// A task of one protocol generation is unknown to a caller of the other, which has other methods for tasks.
	legacyTaskID idKind = 'l'
	modernTaskID idKind = 'm'
	// listCursorID is a position in a list of tasks.
	listCursorID idKind = 'c'
)

// A sealedID names an object of a server: Own is the server's id.
type sealedID struct {
	Kind   idKind
	Server drawbridge.ServerID
	Own    string
}

// sealID returns the sealed id for a principal in URL-safe Base64, so that it fits into a header.
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

// openID opens an id that was sealed for this principal and use by any of the keys.
func (s tokenSealer) openID(principal, text string, kind idKind) (sealedID, bool) {
	t, ok := parseSealedID(text)
	if !ok || t.Kind != kind {
		return sealedID{}, false
	}
	// compare the whole text: Base64 can encode the same bytes in several ways
	return t, slices.ContainsFunc(s.idKeys, func(key []byte) bool {
		return hmac.Equal([]byte(text), []byte(t.encode(key, principal)))
	})
}

// parseSealedID decodes a sealed id without checking its MAC.
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
