//go:build unix

package hub_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// clients is what "drawbridge client" has of the house's store.
func (h *house) clients() *store.DB {
	h.t.Helper()
	db, err := store.Open(h.t.Context(), h.store, store.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = db.Close() })
	return db
}

// listenTo opens a subscriptions/listen at a door with a token, and gives the status and what comes.
func (w *web) listenTo(token string) (int, io.ReadCloser) {
	w.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method":           "subscriptions/listen", "Authorization": "Bearer " + token,
	} {
		r.Header.Set(name, value)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp.StatusCode, resp.Body
}

// TestOA20RemovedClient: the doors of the hub, its own and that of a shim, hear of it when a client is removed.
func TestOA20RemovedClient(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	db := h.clients()
	token, hash := gateway.NewClientToken()
	if err := db.AddClient(t.Context(), store.Client{Name: "ci", Scopes: []drawbridge.Scope{"mcp:*"}},
		hash); err != nil {
		t.Fatal(err)
	}
	doors := []*web{h.listen(), h.listen()}
	var streams []io.ReadCloser
	for _, w := range doors {
		if got := w.echo("nobody"); !strings.Contains(got, "Unauthorized") {
			t.Errorf("without a token: %s", got)
		}
		status, stream := w.listenTo(token.Reveal())
		if status != 200 {
			t.Fatalf("a stream: %d", status)
		}
		streams = append(streams, stream)
	}
	if removed, err := db.RemoveClient(t.Context(), "ci"); !removed || err != nil {
		t.Fatal(removed, err)
	}
	if _, err := hub.Reload(h.options()); err != nil {
		t.Fatal(err)
	}
	for i, stream := range streams {
		_, _ = io.Copy(io.Discard, stream) // returns when the stream has ended, and hangs where it has not
		for _, token := range []string{token.Reveal(), ""} {
			if status, _ := doors[i].listenTo(token); status != 401 {
				t.Errorf("the last client was removed, and %.4q gets in: %d", token, status)
			}
		}
	}
}

// TestADoorHasTheSettingsOfItsTime: an issuer that is configured while the hub runs counts for the next door.
func TestADoorHasTheSettingsOfItsTime(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	if got := h.listen().echo("hello"); got != "hello" {
		t.Fatalf("the first door: %s", got)
	}
	issuer := mcptest.NewTokenIssuer(t, "")
	settings := filepath.Join(filepath.Dir(h.file), "drawbridge.toml")
	if err := os.WriteFile(settings, []byte("[serve]\nissuer = '"+issuer.URL+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := h.listen()
	if got := w.echo("hello"); !strings.Contains(got, "Unauthorized") {
		t.Errorf("without a token: %s", got)
	}
	if status, _ := w.listenTo(issuer.Token(issuer.Claims(w.url, nil))); status != 200 {
		t.Errorf("with an access token: %d", status)
	}
}
