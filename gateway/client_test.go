//go:build !nomcp

package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// serveConfig opens a gateway on a configuration, runs it until the test ends, and gives the URL of its HTTP door.
func serveConfig(t *testing.T, mcpJSON string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(path, []byte(mcpJSON), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.Open(t.Context(), gateway.Config{Paths: []string{path}, Dir: dir, Store: filepath.Join(dir, "store.db"), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	door := httptest.NewServer(g.Server().Handler())
	t.Cleanup(func() {
		door.Close()
		stop()
		if err := <-ran; err != nil && ctx.Err() == nil {
			t.Errorf("run: %v", err)
		}
		if err := g.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	g.AwaitNew(t.Context())
	return door.URL + "/mcp"
}

// A rawClient speaks MCP over HTTP in one era, and hands over what came as bytes.
type rawClient struct {
	url     string
	era     drawbridge.Era
	session string
	id      int
}

const modernMeta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func newRawClient(t *testing.T, url string, era drawbridge.Era) *rawClient {
	t.Helper()
	c := &rawClient{url: url, era: era}
	if era == drawbridge.Legacy {
		c.do(t, wire.MethodInitialize, `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"0"}}`)
		c.post(t, wire.Message{Method: wire.NoteInitialized})
	}
	return c
}

// do sends a request and gives its response.
func (c *rawClient) do(t *testing.T, method, params string) wire.Message {
	t.Helper()
	c.id++
	raw := json.RawMessage(params)
	if c.era == drawbridge.Modern {
		raw = wire.Apply(raw, wire.Put(json.RawMessage(modernMeta), "_meta"))
	}
	return c.post(t, wire.Message{ID: json.RawMessage(strconv.Itoa(c.id)), Method: method, Params: raw})
}

func (c *rawClient) post(t *testing.T, m wire.Message) wire.Message {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, bytes.NewReader(m.Append(nil)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set(wire.HeaderSession, c.session)
	}
	if c.era == drawbridge.Modern {
		req.Header.Set(wire.HeaderVersion, wire.Version20260728)
		req.Header.Set(wire.HeaderMethod, m.Method)
		if name, ok := wire.NameOf(m.Method, m.Params); ok {
			req.Header.Set(wire.HeaderName, wire.EncodeHeader(name))
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if s := resp.Header.Get(wire.HeaderSession); s != "" {
		c.session = s
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if m.ID == nil {
		return wire.Message{}
	}
	answer, err := wire.Parse(body)
	if err != nil {
		t.Fatalf("%s: status %d, body %q: %v", m.Method, resp.StatusCode, body, err)
	}
	return answer
}
