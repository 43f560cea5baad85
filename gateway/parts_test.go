//go:build !nomcp

package gateway_test

import (
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// TestAClientHasThePartOfItsName: at both doors a client of the owner's has what the settings say of its name, and all
// else is not there for it.
func TestAClientHasThePartOfItsName(t *testing.T) {
	for settings, want := range map[string]bool{
		"[serve.clients]\nRaw = ['mcp:fs']\n":   false,
		"[serve.clients]\nother = ['mcp:fs']\n": true,
		"[serve.clients]\n'*' = ['mcp:fs']\n":   false,
	} {
		g := runGateway(t, twoServers(t), settings)
		r := &rig{t: t, running: g}
		for _, door := range []string{"HTTP", "stdio"} {
			for _, era := range []drawbridge.ProtocolEra{drawbridge.Legacy, drawbridge.Modern} {
				c := r.client(t, era, door, `{}`)
				say := func(params string) string {
					if era == drawbridge.Modern {
						params = string(rawjson.Apply([]byte(params),
							rawjson.Put([]byte(`{"name":"raw","version":"0"}`), "_meta", mcp.MetaClientInfo)))
					}
					m := c.do(mcp.MethodToolsCall, params)
					return string(m.Result) + string(m.Error)
				}
				theirs, nothing := say(`{"name":"git__read"}`), say(`{"name":"git__none"}`)
				if there := theirs != strings.ReplaceAll(nothing, "git__none", "git__read"); there != want {
					t.Errorf("%s, %s at %s: %s", settings, era, door, theirs)
				}
				if text := say(`{"name":"fs__read"}`); !strings.Contains(text, `"content":[]`) {
					t.Errorf("%s, %s at %s: %s", settings, era, door, text)
				}
			}
		}
	}
}
