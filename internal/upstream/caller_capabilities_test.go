package upstream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/drawbridge-mcp/drawbridge"
)

func TestCapabilitiesAreParsedOncePerClient(t *testing.T) {
	for name, newServer := range map[string]func() *fake{
		"legacy server": newFake,
		"modern server": func() *fake { return newModernFake(`"2026-07-28"`) },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, newServer(), Options{})
			for range 20 {
				for _, c := range []drawbridge.Caller{talker("one"), talker("two"), caller(drawbridge.Modern)} {
					c.Client = json.RawMessage(`{"name":"client","version":"1"}`)
					c.Capabilities = json.RawMessage(`{"tasks":{"list":{}}}`)
					r.call(echo(c))
				}
			}
			if got := r.pool.clients.parsed; got != 1 {
				t.Errorf("%s: one declaration was parsed %d times in 60 calls", name, got)
			}
		})
	}
}

func TestClientTraitsCacheIsBounded(t *testing.T) {
	var cache clientTraitsCache
	for i := range 3 * maxCachedDeclarations {
		cache.traits(drawbridge.Caller{Capabilities: fmt.Appendf(nil, `{"experimental":{"n":%d}}`, i)})
	}
	if len(cache.known) != maxCachedDeclarations {
		t.Errorf("%d declarations are kept", len(cache.known))
	}
	kept := len(cache.known)
	large := `{"experimental":{"x":"` + strings.Repeat("x", maxCachedDeclaration) + `"}}`
	if !cache.traits(drawbridge.Caller{Capabilities: json.RawMessage(large)}).declaresExtensions {
		t.Error("a large declaration is not read")
	}
	if len(cache.known) != kept {
		t.Error("a large declaration is kept")
	}
}
