package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// old is an HTTPConn+SSE server: first is the beginning of its stream, which then carries what say gets; post answers
// POSTs.
func old(first string, says <-chan string, post http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			post(w, r)
			return
		}
		say(w, 200, events, mcp.Message{}, first)
		for {
			select {
			case s, open := <-says:
				if !open {
					return
				}
				_, _ = io.WriteString(w, s)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
}

func TestSSE(t *testing.T) { overBoth(t, testSSE) }

func testSSE(t *testing.T) {
	says := make(chan string, 10)
	post := func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.RequestURI() + " " + r.Header.Get("Authorization"); got != "/messages?id=7 Bearer x" {
			t.Errorf("the server was asked for %s", got)
		}
		m := read(t, r)
		switch m.Method {
		case "refuse":
			http.Error(w, "bad", 400)
			return
		case "lose":
			http.Error(w, "no session", 404)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		says <- "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":" + string(m.ID) + ",\"result\":{\"ok\":true}}\n\n"
	}
	c, err := transport.DialSSE(t.Context(), transport.HTTPOptions{
		URL: "http://server.test/sse", Headers: http.Header{"Authorization": {"Bearer x"}},
		Client: serve(t, old(": hello\n\nevent: endpoint\ndata: /messages?id=7\n\n", says, post)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	for _, tt := range []struct {
		method string
		want   httpReply
	}{
		{"tools/list", httpReply{Answer: `{"ok":true}`}},
		{"refuse", httpReply{Is: []string{"status"}}},
		{"tools/list", httpReply{Answer: `{"ok":true}`}},
		{"lose", httpReply{Is: []string{"session", "closed"}}},
		{"tools/list", httpReply{Is: []string{"session", "closed"}}},
	} {
		got, err := do(t, c, tt.method, `{}`, nil)
		if diff := cmp.Diff(tt.want, got, sorted); diff != "" {
			t.Errorf("%s: %v %s", tt.method, err, diff)
		}
	}
}

// TestSSEEnds has a stream that ends under a call whose POST hangs.
func TestSSEEnds(t *testing.T) { overBoth(t, testSSEEnds) }

func testSSEEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		says := make(chan string)
		post := func(_ http.ResponseWriter, r *http.Request) {
			_ = read(t, r)
			<-r.Context().Done()
		}
		c, err := transport.DialSSE(t.Context(), transport.HTTPOptions{URL: url,
			Client: serve(t, old("event: endpoint\ndata: /m\n\n", says, post))})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { close(says) })
		got, err := do(t, c, "tools/call", `{}`, nil)
		if diff := cmp.Diff(httpReply{Is: []string{"lost"}}, got, sorted); diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		<-c.Done()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestDialSSE has servers that are none of this kind.
func TestDialSSE(t *testing.T) { overBoth(t, testDialSSE) }

func testDialSSE(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    any
	}{
		{"405", status(405, ""), &transport.HTTPStatusError{Code: 405, Body: []byte{}}},
		{"a page", status(200, "<p>"), "the stream has content type \"text/plain\""},
		{"no address", stream("data: x\n\n"), transport.ErrLost},
		{"another origin", stream("event: endpoint\ndata: https://server.test/messages\n\n"),
			transport.ErrRedirectRefused},
		{"another host", stream("event: endpoint\ndata: //evil.test/messages\n\n"), transport.ErrRedirectRefused},
		{"no URL", stream("event: endpoint\ndata: http://[\n\n"), "the server names no valid address for messages"},
		{"silence", func(w http.ResponseWriter, r *http.Request) {
			say(w, 200, events, mcp.Message{}, "")
			<-r.Context().Done()
		}, context.DeadlineExceeded},
		{"redirected away", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://evil.test/", http.StatusFound)
		}, transport.ErrRedirectRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := transport.DialSSE(ctx, transport.HTTPOptions{URL: url, Client: serve(t, tt.handler)})
				switch want := tt.want.(type) {
				case string:
					if err == nil || err.Error() != want {
						t.Errorf("got %v, want %s", err, want)
					}
				case *transport.HTTPStatusError:
					got, _ := errors.AsType[*transport.HTTPStatusError](err)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%v %s", err, diff)
					}
				case error:
					if !errors.Is(err, want) {
						t.Errorf("got %v, want %v", err, want)
					}
				}
			})
		})
	}
}
