package server

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

// serveOn serves a server over HTTP until the test ends.
func serveOn(t *testing.T, s *Server) (url string) {
	t.Helper()
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		_ = s.Close()
		web.Close()
	})
	return web.URL
}

const discover = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`

func TestGuard(t *testing.T) {
	url := serveHTTP(t, newFakeDeck(), Options{Token: []byte("secret"), Origins: []string{"https://ok.example"},
		MaxBody: 1000})
	host := strings.TrimPrefix(url, "http://")
	for _, tt := range []struct {
		name   string
		change func(*http.Request)
		want   int
	}{
		{"nothing", func(*http.Request) {}, 200},
		{"a lower case scheme", func(r *http.Request) { r.Header.Set("Authorization", "bearer secret") }, 200},
		{"no token", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"another token", func(r *http.Request) { r.Header.Set("Authorization", "Bearer secrets") }, 401},
		{"another scheme", func(r *http.Request) { r.Header.Set("Authorization", "Basic secret") }, 401},
		{"localhost", func(r *http.Request) { r.Host = "localhost:80" }, 200},
		{"IPv6 loopback", func(r *http.Request) { r.Host = "[::1]" }, 200},
		{"a foreign host", func(r *http.Request) { r.Host = "evil.example" }, 403},
		{"a foreign host that begins well", func(r *http.Request) { r.Host = "localhost.evil.example:1" }, 403},
		{"an address of the network", func(r *http.Request) { r.Host = "192.168.0.1" }, 403},
		{"a page of ours", func(r *http.Request) { r.Header.Set("Origin", url) }, 200},
		{"a page that is allowed", func(r *http.Request) { r.Header.Set("Origin", "https://ok.example") }, 200},
		{"a page of another port", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, 403},
		{"a foreign page", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		{"a page of no origin", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		{"two origins", func(r *http.Request) {
			r.Header["Origin"] = []string{"https://ok.example",
				"https://evil.example"}
		}, 403},
		{"a page that hides its origin", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"a page of a neighbour that hides its origin", func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site",
				"same-site")
		}, 403},
		{"a person who typed our address", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, 200},
		{"no type", func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		{"a form", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		{"a type with a charset", func(r *http.Request) {
			r.Header.Set("Content-Type",
				"application/json; charset=utf-8")
		}, 200},
		{"accepts nothing of ours", func(r *http.Request) { r.Header.Set("Accept", "text/html") }, 406},
		{"does not say what it accepts", func(r *http.Request) { r.Header.Del("Accept") }, 200},
		{"accepts all", func(r *http.Request) { r.Header.Set("Accept", "*/*") }, 200},
		{"a large body", func(r *http.Request) {
			*r = *modernRequest(t, url, `{"id":1,"method":"`+strings.Repeat("x", 1000)+`"}`)
			r.Header.Set("Authorization", "Bearer secret")
		}, 413},
		{"a large body of unknown size", func(r *http.Request) {
			*r = *modernRequest(t, url, `{"id":1,"method":"`+strings.Repeat("x", 1000)+`"}`)
			r.ContentLength = -1
			r.Header.Set("Authorization", "Bearer secret")
		}, 413},
		{"a question of a browser", func(r *http.Request) {
			r.Method = http.MethodOptions
			r.Header.Set("Origin", "https://ok.example")
			r.Header.Del("Authorization")
		}, 204},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := modernRequest(t, url, discover)
			r.Header.Set("Authorization", "Bearer secret")
			tt.change(r)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != tt.want {
				t.Errorf("status %d, want %d (host %s)", resp.StatusCode, tt.want, host)
			}
			if challenge := resp.Header.Get("WWW-Authenticate"); tt.want == 401 &&
				!strings.HasPrefix(challenge, "Bearer ") {
				t.Errorf("challenge %q", challenge)
			}
		})
	}
}

// TestStreamOnly: a client that takes streams only gets one.
func TestStreamOnly(t *testing.T) {
	r := modernRequest(t, serveHTTP(t, newFakeDeck(), Options{}),
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plain",`+meta+`}}`)
	r.Header.Set("Accept", "text/event-stream")
	_, body := send(t, r)
	want := "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[],\"structuredContent\":{},\"resultType\":\"complete\"," + ourMeta + "}}\n\n"
	if diff := cmp.Diff(want, body); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// TestJSONOnly: a client that takes no stream gets its answer, and misses what was said before it.
func TestJSONOnly(t *testing.T) {
	d := newFakeDeck()
	d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		if err := call.Peer.Notify(ctx, "notifications/progress", nil); err != nil {
			t.Errorf("notify: %v", err)
		}
		return drawbridge.Result{Raw: json.RawMessage(`{"resultType":"complete"}`)}, nil
	}
	r := modernRequest(t, serveHTTP(t, d, Options{}),
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plain",`+meta+`}}`)
	r.Header.Set("Accept", "application/json")
	_, body := send(t, r)
	if want := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",` + ourMeta + `}}`; body != want {
		t.Errorf("answer %s, want %s", body, want)
	}
}

// A farListener says that it listens on an address of the network.
type farListener struct{ net.Listener }

func (farListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }

func TestServeRefusesTheNetworkWithoutToken(t *testing.T) {
	s := newServer(t, newFakeDeck(), Options{})
	for _, err := range []error{s.CheckListener(farListener{}), s.Serve(t.Context(), farListener{})} {
		f, ok := errors.AsType[*drawbridge.Fault](err)
		if !ok || f.Code != drawbridge.InvalidInput {
			t.Fatalf("error %v, want an InvalidInput fault", err)
		}
		if want := "serve on 192.0.2.1:80: beyond loopback a bearer token is required (set one with --token-file FILE or DRAWBRIDGE_TOKEN, or one for each client with drawbridge client add NAME; or bind 127.0.0.1)"; f.Error() != want {
			t.Errorf("error %q, want %q", f, want)
		}
	}
	if err := newServer(t, newFakeDeck(), Options{Token: []byte("secret")}).CheckListener(farListener{}); err != nil {
		t.Errorf("with a token: %v", err)
	}
	near, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	if err := s.CheckListener(near); err != nil {
		t.Errorf("on loopback: %v", err)
	}
}

// TestServe shows that Serve answers at its path, and that streams and calls end with it.
func TestServe(t *testing.T) {
	d := newFakeDeck()
	started := make(chan struct{})
	d.do = func(ctx context.Context, _ drawbridge.Call) (drawbridge.Result, error) {
		close(started)
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}
	s := newServer(t, d, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, l) }()
	url := "http://" + l.Addr().String()
	if status, _ := send(t, modernRequest(t, url+"/other", discover)); status != 404 {
		t.Errorf("another path: status %d", status)
	}
	if status, _ := send(t, modernRequest(t, url+Path, discover)); status != 200 {
		t.Errorf("the path: status %d", status)
	}
	events, end := listenTo(t, url+Path, `{"toolsListChanged":true}`)
	defer end()
	next(t, events)
	send(t, modernRequest(t, url+Path, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plain",`+meta+
		`}}`))
	<-started
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the end: %v", err)
	}
	if _, err := events.Next(); err != nil {
		t.Errorf("the stream ended without a word: %v", err)
	}
}
