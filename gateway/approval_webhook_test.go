//go:build !nomcp

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestAWebhookTellsOfAWaitingCall has a client make a call that a rule asks about.
func TestAWebhookTellsOfAWaitingCall(t *testing.T) {
	bodies := make(chan string, 4)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		bodies <- string(text) + r.Header.Get("webhook-signature")
	}))
	defer receiver.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a long secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runGateway(t, `{"servers":{"every":`+string(mcptest.ServerRow(t, "everything"))+`}}`, fmt.Sprintf(`
[tools]
ask_webhook = %q
ask_webhook_secret_file = %q
[[tools.policy.rules]]
effect = "ask"
tools = "every__echo"
`, receiver.URL, secret))
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.Deck().Call(ctx, drawbridge.Call{
			Caller: drawbridge.Caller{Kind: drawbridge.External, Principal: "client:ci", Scopes: []drawbridge.Scope{"*"}},
			Method: mcp.MethodToolsCall,
			Params: []byte(`{"name":"every__echo","arguments":{"text":"not for the webhook"}}`),
		})
		ended <- err
	}()
	body := <-bodies
	giveUp()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "while a person was asked") {
		t.Errorf("the call ends with %v", err)
	}
	for _, want := range []string{`"type":"approval.pending"`, `"tool":"every__echo"`, `"server":"every"`,
		`"caller":"client:ci"`, `"show":"drawbridge ask show `, "}v1,"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if strings.Contains(body, "not for the webhook") {
		t.Errorf("the arguments are in %s", body)
	}
}

// TestAWebhookNeedsASecret: without one, its receiver could not tell our requests from others.
func TestAWebhookNeedsASecret(t *testing.T) {
	for settings, want := range map[string]string{
		`ask_webhook = "https://h.example"`: "ask_webhook needs a secret, so that its receiver can tell our requests from " +
			"others (set tools.ask_webhook_secret_file in drawbridge.toml)",
		"ask_webhook = \"https://h.example\"\nask_webhook_secret_file = \"/nowhere/secret\"": "read the webhook secret file",
	} {
		dir := t.TempDir()
		_, err := gateway.Open(t.Context(), actConfig(t, dir, "[tools]\n"+settings))
		if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.InvalidInput ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", settings, err)
		}
	}
}
