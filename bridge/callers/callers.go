// Package callers knows what callers say of themselves, and what is to be remembered of them between two calls: which log
// lines they want, and that they are gone.
//
// It promises that nothing is remembered for longer than it is of use: of a session that has ended only that it has, and
// that for a minute. With which servers callers speak, and who shares what with whom, is decided elsewhere.
package callers

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// CanBeAsked says whether a caller declared that servers may ask it something, which takes a session that says so. An extension
// that is not known here may have questions of its own.
func CanBeAsked(c drawbridge.Caller) bool {
	if c.Session == "" && c.Era != drawbridge.Modern {
		return false
	}
	return wire.Declares(c.Capabilities, "sampling", "elicitation", "roots") || len(wire.Foreign(c.Capabilities)) > 0
}

// SpeaksForItself says whether a caller declared anything else that a server may go by.
func SpeaksForItself(c drawbridge.Caller) bool {
	return wire.Declares(c.Capabilities, "extensions", "experimental", "tasks")
}

// Kind tells kinds of client apart: by what they say of themselves, however they write it. It is never empty.
func Kind(c drawbridge.Caller) string {
	h := sha256.New()
	for _, said := range []json.RawMessage{c.Client, c.Capabilities} {
		said = wire.Canonical(said)
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(said))))
		h.Write(said)
	}
	return string(h.Sum(nil))
}

// LevelIn gives the log level that a stateless request asks for; empty for none.
func LevelIn(params json.RawMessage) string {
	if !bytes.Contains(params, []byte("logLevel")) {
		return ""
	}
	return wire.GetText(params, "_meta", wire.MetaLogLevel)
}
