package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// nullWriter is the cheapest http.ResponseWriter, so that a benchmark counts what is ours.
type nullWriter struct {
	header http.Header
	n      int
}

func (w *nullWriter) Header() http.Header         { return w.header }
func (w *nullWriter) WriteHeader(int)             {}
func (w *nullWriter) Write(b []byte) (int, error) { w.n += len(b); return len(b), nil }

// BenchmarkModernCall is a stateless tools/call from the HTTP handler to a deck that answers at once.
func BenchmarkModernCall(b *testing.B) {
	for name, size := range map[string]int{"64B": 64, "16KiB": 16 << 10, "256KiB": 256 << 10} {
		b.Run(name, func(b *testing.B) {
			d := newFakeDeck()
			answer := drawbridge.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"` +
				strings.Repeat("x", size) + `"}],"resultType":"complete"}`)}
			d.do = func(context.Context, drawbridge.Call) (drawbridge.Result, error) { return answer, nil }
			h := newServer(b, d, Options{}).Handler()
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plain","arguments":{"text":"` +
				strings.Repeat("x", 64) + `"},` + meta + `}}`
			r := modernRequest(b, "http://localhost", body)
			r.Header.Set("Content-Length", "1")
			w := &nullWriter{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				r.Body = io.NopCloser(strings.NewReader(body))
				h.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkLegacyCall is the same for a stateful caller.
func BenchmarkLegacyCall(b *testing.B) {
	s := newServer(b, newFakeDeck(), Options{})
	h := s.Handler()
	c := s.newSession(s.o.Caller, nil)
	if !s.addSession(c) {
		b.Fatal("there is no room for one session")
	}
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plain","arguments":{"text":"x"}}}`
	r := httpRequest(b, http.MethodPost, "http://localhost", body)
	r.Header.Set(mcp.HeaderSession, c.caller.Session)
	w := &nullWriter{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		r.Body = io.NopCloser(strings.NewReader(body))
		h.ServeHTTP(w, r)
	}
}

// BenchmarkEvent tells an event to 10,000 sessions.
func BenchmarkEvent(b *testing.B) {
	d := newFakeDeck()
	s := newServer(b, d, Options{MaxSessions: 10_000})
	for range 10_000 {
		if !s.addSession(s.newSession(s.o.Caller, nil)) {
			b.Fatal("there is no room")
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		d.tell(deck.Event{Kind: deck.ToolsChanged})
	}
}
