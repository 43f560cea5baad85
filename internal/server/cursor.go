package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// cursorSize is the length of a decoded cursor in bytes. The first 4 bytes are the index of the first item of a page.
// The other 8 bytes are the beginning of a hash of the item before the page.
const cursorSize = 12

var errBadCursor = errors.New("it is not one of ours")

// pageCursor returns the cursor of the page that begins at the item with the index start, which must not be 0.
func pageCursor(items []json.RawMessage, start int) string {
	var raw [cursorSize]byte
	binary.BigEndian.PutUint32(raw[:4], uint32(start))
	sum := sha256.Sum256(items[start-1])
	copy(raw[4:], sum[:])
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// resolveCursor returns the index of the first item of the cursor's page. That is the index in the cursor, if the item
// before it still has the hash in the cursor. Otherwise the list has changed, and it is the index after the item with
// that hash. If no item has that hash, resolveCursor returns an error.
func resolveCursor(items []json.RawMessage, cursor json.RawMessage) (start int, err error) {
	text, ok := rawjson.DecodeString(cursor)
	if !ok || len(text) != base64.RawURLEncoding.EncodedLen(cursorSize) {
		return 0, errBadCursor
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, errBadCursor
	}
	behind := func(i int) bool {
		sum := sha256.Sum256(items[i-1])
		return string(sum[:cursorSize-4]) == string(raw[4:])
	}
	if start = int(binary.BigEndian.Uint32(raw)); start > 0 && start <= len(items) && behind(start) {
		return start, nil
	}
	for i := range items {
		if behind(i + 1) {
			return i + 1, nil
		}
	}
	return 0, errors.New("the list has changed, start again")
}
