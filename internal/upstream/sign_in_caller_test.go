//go:build unix

package upstream

import (
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// TestNobodySignsInForAnother has a caller from elsewhere at a server that the owner has not signed in at: neither in
// words nor by a question are they sent to where they would be taken for the owner.
func TestNobodySignsInForAnother(t *testing.T) {
	for _, credentials := range []string{"", config.PerCallerCredentials} {
		p := oauthtest.New(t, oauthtest.Options{})
		row := protected(p)
		row.Credentials = credentials
		r := runReal(t, Options{}, row)
		r.await("protected", drawbridge.NeedsSignIn)
		address := r.statusOf("protected").SignIn
		v := &visitor{p: p}
		for _, era := range []drawbridge.ProtocolEra{drawbridge.Legacy, drawbridge.Modern} {
			call := whoami(caller(era))
			call.Caller.Principal, call.Caller.Session, call.Peer = "bob", "s", v
			call.Caller.Capabilities = []byte(`{"elicitation":{"url":{}}}`)
			result, err := r.Do(t.Context(), "protected", call)
			if err == nil || len(v.asked) != 0 {
				t.Errorf("credentials %q: bob is asked to sign in as the owner: %v, %q, %s", credentials, err,
					v.asked, result.Raw)
				continue
			}
			f := drawbridge.AsFault(err)
			if text := f.Error() + f.Next; f.Code != drawbridge.AuthFailure || strings.Contains(text, "http://") ||
				strings.Contains(text, address) {
				t.Errorf("credentials %q: bob is told %+v", credentials, f)
			}
		}
		if n := p.Authorizations(); n != 0 {
			t.Errorf("credentials %q: somebody signed in", credentials)
		}
	}
}
