package transport_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// malformedResponses are responses to the request with the id $, and the reason that its caller reads.
var malformedResponses = []struct{ response, reason string }{
	{`{"jsonrpc":"2.0","id":$}`, "it has neither result nor error"},
	{`{"jsonrpc":"2.0","id":$,"result":null}`, "the result is not an object"},
	{`{"jsonrpc":"2.0","id":$,"result":[1]}`, "the result is not an object"},
	{`{"jsonrpc":"2.0","id":"$","result":{}}`, "the id is not the integer that the request had"},
	{`{"jsonrpc":"2.0","id":$.0,"result":{}}`, "the id is not the integer that the request had"},
	{`{"jsonrpc":"2.0","id":$,"result":{},"result":{"a":1}}`, `member "result" is repeated or has a look-alike`},
	{`{"jsonrpc":"2.0","id":7,"id":$,"result":{}}`, `member "id" is repeated or has a look-alike`},
}

// TestMalformedResponsesFailTheirCall has a call that would otherwise wait for its timeout.
func TestMalformedResponsesFailTheirCall(t *testing.T) {
	for _, tt := range malformedResponses {
		t.Run(tt.response, func(t *testing.T) {
			s, p := connect(t, transport.StreamConnOptions{})
			got := make(chan error, 1)
			go func() {
				_, err := transport.ResultOrError(s.Call(t.Context(), "tools/call", json.RawMessage(`{}`), nil))
				got <- err
			}()
			p.write(p.read().ID, tt.response)
			if err := <-got; !transport.IsMalformed(err) || err.Error() != "malformed response: "+tt.reason {
				t.Errorf("got %v, want %s", err, tt.reason)
			}
		})
	}
}

func TestMalformedResponsesOverHTTPFailTheirCall(t *testing.T) {
	for _, tt := range malformedResponses {
		t.Run(tt.response, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				m, _ := mcp.ParseMessage(body)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, strings.ReplaceAll(tt.response, "$", string(m.ID)))
			}))
			t.Cleanup(server.Close)
			h := dial(t, transport.HTTPOptions{URL: server.URL})
			_, err := transport.ResultOrError(h.Call(t.Context(), "tools/call", json.RawMessage(`{}`), nil))
			if !transport.IsMalformed(err) || err.Error() != "malformed response: "+tt.reason {
				t.Errorf("got %v, want %s", err, tt.reason)
			}
		})
	}
}
