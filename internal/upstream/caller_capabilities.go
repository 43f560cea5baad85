package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// clientTraits is the parsed form of the client info and capabilities that a caller declared.
type clientTraits struct {
	// acceptsRequests reports whether servers may send requests to the client. It is set if the client declared
	// sampling, elicitation, roots, or an extension that Drawbridge does not know. Such an extension may define
	// requests of its own.
	acceptsRequests bool
	// declaresExtensions reports whether the client declared extensions, experimental capabilities or tasks.
	declaresExtensions bool
	// declaresElicitation reports whether the client declared elicitation.
	declaresElicitation bool
	// kind is a key for clients with the same client info and capabilities, regardless of their JSON formatting. It is
	// not empty.
	kind string
	// withoutElicitation and withoutTasks are the capabilities without the member "elicitation" or "tasks".
	withoutElicitation, withoutTasks json.RawMessage
}

// parseClientTraits parses the client info and the capabilities that a client declared.
func parseClientTraits(client, capabilities json.RawMessage) *clientTraits {
	return &clientTraits{
		acceptsRequests: mcp.DeclaresAny(capabilities, "sampling", "elicitation", "roots") ||
			len(mcp.UnknownExtensions(capabilities)) > 0,
		declaresExtensions:  mcp.DeclaresAny(capabilities, "extensions", "experimental", "tasks"),
		declaresElicitation: mcp.DeclaresAny(capabilities, "elicitation"),
		kind:                clientKind(client, capabilities),
		withoutElicitation:  rawjson.Apply(capabilities, rawjson.Drop("elicitation")),
		withoutTasks:        rawjson.Apply(capabilities, rawjson.Drop("tasks")),
	}
}

// clientKind returns a key for clients with this client info and these capabilities: a hash of their canonical JSON.
func clientKind(client, capabilities json.RawMessage) string {
	h := sha256.New()
	for _, declared := range []json.RawMessage{client, capabilities} {
		declared = rawjson.Canonical(declared)
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(declared))))
		h.Write(declared)
	}
	return string(h.Sum(nil))
}

const (
	// maxCachedDeclarations is how many declarations a clientTraitsCache stores. A gateway has few kinds of client.
	maxCachedDeclarations = 256
	// maxCachedDeclaration is the size in bytes of the largest declaration that a clientTraitsCache stores. A larger
	// declaration is parsed for each call.
	maxCachedDeclaration = 16 << 10
)

// A declaration is the client info and the capabilities that a client sent, unchanged.
type declaration struct{ client, capabilities string }

// A clientTraitsCache parses each declaration once and stores the result. The key is the declaration and not the
// session, since a stateless client sends its declaration with each request. The zero value is empty; its methods may
// be called from several goroutines.
type clientTraitsCache struct {
	mu     sync.Mutex
	known  map[declaration]*clientTraits
	parsed int // how many declarations were parsed
}

// traits returns the traits of a caller. The result is shared and must not be changed.
func (t *clientTraitsCache) traits(c drawbridge.Caller) *clientTraits {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.known[declaration{string(c.Client), string(c.Capabilities)}]; found != nil {
		return found
	}
	t.parsed++
	parsed := parseClientTraits(c.Client, c.Capabilities)
	if len(c.Client)+len(c.Capabilities) > maxCachedDeclaration {
		return parsed
	}
	if t.known == nil {
		t.known = map[declaration]*clientTraits{}
	}
	if len(t.known) == maxCachedDeclarations {
		// Delete an arbitrary entry. An LRU cache would have to build a key, which copies two strings, for each call.
		for key := range t.known {
			delete(t.known, key)
			break
		}
	}
	t.known[declaration{string(c.Client), string(c.Capabilities)}] = parsed
	return parsed
}

// canBeAsked reports whether servers may send requests to the caller. The caller must accept requests, and must have a
// session or be stateless.
func (t *clientTraitsCache) canBeAsked(c drawbridge.Caller) bool {
	return (c.Session != "" || c.Era == drawbridge.Modern) && t.traits(c).acceptsRequests
}

// requestedLogLevel returns the log level in the _meta of a stateless request, or "" if the request names none.
func requestedLogLevel(params json.RawMessage) string {
	if !bytes.Contains(params, []byte("logLevel")) {
		return ""
	}
	return rawjson.GetString(params, "_meta", mcp.MetaLogLevel)
}
