package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// canBeAsked says whether a caller declared that servers may ask it something, which takes a session that says so. An
// extension that is not known here may have questions of its own.
func canBeAsked(c drawbridge.Caller) bool {
	if c.Session == "" && c.Era != drawbridge.Modern {
		return false
	}
	return mcp.DeclaresAny(c.Capabilities, "sampling", "elicitation", "roots") ||
		len(mcp.UnknownExtensions(c.Capabilities)) > 0
}

// declaresExtensions says whether a caller declared anything else that a server may go by.
func declaresExtensions(c drawbridge.Caller) bool {
	return mcp.DeclaresAny(c.Capabilities, "extensions", "experimental", "tasks")
}

// clientKind tells kinds of client apart: by what they say of themselves, however they write it. It is never empty.
func clientKind(c drawbridge.Caller) string {
	h := sha256.New()
	for _, said := range []json.RawMessage{c.Client, c.Capabilities} {
		said = rawjson.Canonical(said)
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(said))))
		h.Write(said)
	}
	return string(h.Sum(nil))
}

// requestedLogLevel gives the log level that a stateless request asks for; empty for none.
func requestedLogLevel(params json.RawMessage) string {
	if !bytes.Contains(params, []byte("logLevel")) {
		return ""
	}
	return rawjson.GetString(params, "_meta", mcp.MetaLogLevel)
}
