package deck

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// Each server chooses its task IDs: two servers may use the same ID, and many IDs can be guessed. So callers get a
// sealed ID instead. It contains the server's name, the server's own task ID, and a MAC. The MAC proves that a deck
// with the same key issued the ID to this principal. Forged IDs and IDs of other principals are refused, without a
// table of the issued IDs. For one principal, a task always has the same sealed ID: in lists, in notifications and
// after a restart.

const (
	sealedIDVersion = 1
	sealedIDMACLen  = 16
	// sealedIDHeaderLen is the length in bytes of the fields before the server's name: the version, the kind, the MAC,
	// and the length of the name.
	sealedIDHeaderLen = 2 + sealedIDMACLen + 1
)

// An idKind is the purpose of a sealed ID. An ID can be opened only for its own purpose.
type idKind byte

// The kinds of sealed IDs.

const (
	// legacyTaskID and modernTaskID are the IDs of tasks. Each protocol generation has its own kind, because the
	// methods for tasks differ. So a caller of one generation cannot use a task of the other generation.
	legacyTaskID idKind = 'l'
	modernTaskID idKind = 'm'
	// listCursorID is a cursor, which identifies the next page of a list of tasks.
	listCursorID idKind = 'c'
)

// A sealedID is the content of a sealed ID: its kind, the server, and the server's own task ID or cursor.
type sealedID struct {
	Kind   idKind
	Server drawbridge.ServerID
	Own    string
}

// sealID returns the text of the sealed ID for a principal. It is URL-safe Base64, so that it can be sent in an HTTP
// header.
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

// openID returns the content of a sealed ID. It returns false unless the ID was sealed for this principal and kind,
// with any of the keys.
func (s tokenSealer) openID(principal, text string, kind idKind) (sealedID, bool) {
	t, ok := parseSealedID(text)
	if !ok || t.Kind != kind {
		return sealedID{}, false
	}
	// Compare the whole text, because several Base64 texts can decode to the same bytes.
	return t, slices.ContainsFunc(s.idKeys, func(key []byte) bool {
		return hmac.Equal([]byte(text), []byte(t.encode(key, principal)))
	})
}

// parseSealedID decodes a sealed ID without checking its MAC.
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
