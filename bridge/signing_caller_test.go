//go:build unix

package bridge

import (
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcptest/idp"
)

// TestEachCallerSignsInAsThemselves has a row that gives each caller their own credential: whoever is sent to sign in is never
// sent to do so in another's name.
func TestEachCallerSignsInAsThemselves(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		p := idp.New(t, idp.Options{Knobs: idp.Knobs{Server: idp.Server{Legacy: legacy}}})
		row := protected(p)
		row.Credentials = config.PerCaller
		r := runReal(t, Options{}, row)
		r.await("protected", drawbridge.NeedsSignIn)
		bob := caller(drawbridge.Modern)
		bob.Principal = "bob"
		who := func() (*drawbridge.Fault, string) {
			t.Helper()
			result, err := r.Do(t.Context(), "protected", whoami(bob))
			if err == nil {
				return nil, string(result.Raw)
			}
			f := drawbridge.AsFault(err)
			_, address, _ := strings.Cut(f.Next, "or open ")
			return f, address
		}
		if f, address := who(); f == nil || address != "" || !strings.HasPrefix(f.Next, "ask whoever runs the server here to sign in") {
			t.Errorf("bob is told %+v", f)
		}
		v := &visitor{p: p}
		asking := whoami(bob)
		asking.Peer, asking.Caller.Capabilities = v, []byte(`{"elicitation":{"url":{}}}`)
		if _, err := r.Do(t.Context(), "protected", asking); err == nil || len(v.asked) != 0 {
			t.Errorf("bob is asked to sign in as the owner: %v, %q", err, v.asked)
		}
		r.visit(p, "protected")
		r.await("protected", drawbridge.Ready)
		f, address := who()
		if f == nil || f.Code != drawbridge.AuthFailure || address == "" {
			t.Fatalf("bob is told %+v", f)
		}
		p.Turn(func(k *idp.Knobs) { k.User = "bob" })
		if err := p.Visit(t.Context(), address); err != nil {
			t.Fatal(err)
		}
		if f, said := who(); f != nil || !strings.Contains(said, `"bob"`) && !strings.Contains(said, `\"bob\"`) {
			t.Errorf("bob is %s, %+v", said, f)
		}
		result, err := r.Do(t.Context(), "protected", whoami(caller(drawbridge.Modern)))
		if err != nil || strings.Contains(string(result.Raw), "bob") {
			t.Errorf("the owner is %s, %v", result.Raw, err)
		}
		if s := r.statusOf("protected"); s.Phase != drawbridge.Ready {
			t.Errorf("%+v", s)
		}
	}
}
