package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A pen is a Signer with a list of tokens: each refusal brings the next.
type pen struct {
	mu      sync.Mutex
	tokens  []string
	broken  error // what Token gives
	helps   error // what Refused gives beside
	refused []string
}

func (p *pen) Token(context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tokens[0], p.broken
}

func (p *pen) ReplaceToken(_ context.Context, used string, status int, header http.Header,
	body []byte) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = append(p.refused, used+" "+http.StatusText(status)+" "+header.Get("WWW-Authenticate")+" "+string(body))
	if p.helps != nil || len(p.tokens) < 2 {
		return "", p.helps
	}
	p.tokens = p.tokens[1:]
	return p.tokens[0], nil
}

// guarded is a server that wants one token, and takes down what it was sent.
func guarded(t *testing.T, status int, want string) (*httptest.Server, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen = append(seen, r.Method+" "+r.Header.Get("Authorization"))
		mu.Unlock()
		if r.Header.Get("Authorization") != want {
			w.Header().Set("WWW-Authenticate", "Bearer x=1")
			http.Error(w, "who?", status)
			return
		}
		m, err := mcp.ParseMessage(body)
		if err != nil {
			t.Errorf("%s, %v", body, err)
		}
		say(w, 200, plain, m, answer)
	}))
	t.Cleanup(s.Close)
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// TestSigned has requests signed: each with the token of the moment, and once more with another where the first is
// refused.
func TestSigned(t *testing.T) { overBoth(t, testSigned) }

func testSigned(t *testing.T) {
	later := errors.New("away for now")
	for _, tt := range []struct {
		name    string
		pen     *pen
		status  int
		want    string
		seen    []string
		refused []string
		err     string
	}{
		{"the right one", &pen{tokens: []string{"a"}}, 401, "Bearer a", []string{"POST Bearer a"}, nil, ""},
		{"none, and none needed", &pen{tokens: []string{""}}, 401, "", []string{"POST "}, nil, ""},
		{"none at first", &pen{tokens: []string{"", "a"}}, 401, "Bearer a", []string{"POST ", "POST Bearer a"},
			[]string{" Unauthorized Bearer x=1 who?\n"}, ""},
		{"an old one", &pen{tokens: []string{"a", "b"}}, 401, "Bearer b", []string{"POST Bearer a", "POST Bearer b"},
			[]string{"a Unauthorized Bearer x=1 who?\n"}, ""},
		{"too little", &pen{tokens: []string{"a", "b"}}, 403, "Bearer b", []string{"POST Bearer a", "POST Bearer b"},
			[]string{"a Forbidden Bearer x=1 who?\n"}, ""},
		{"never right", &pen{tokens: []string{"a", "b", "c"}}, 401, "Bearer c", []string{"POST Bearer a",
			"POST Bearer b"}, []string{"a Unauthorized Bearer x=1 who?\n"}, "status 401"},
		{"no other one", &pen{tokens: []string{"a"}}, 401, "Bearer b", []string{"POST Bearer a"},
			[]string{"a Unauthorized Bearer x=1 who?\n"}, "status 401"},
		{"another one later", &pen{tokens: []string{"a", "b"}, helps: later}, 401, "Bearer b",
			[]string{"POST Bearer a"}, []string{"a Unauthorized Bearer x=1 who?\n"}, "away for now"},
		{"about something else", &pen{tokens: []string{"a", "b"}}, 404, "Bearer b", []string{"POST Bearer a"},
			nil, "status 404"},
		{"not to be had", &pen{tokens: []string{""}, broken: later}, 401, "", nil, nil, "away for now"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, seen := guarded(t, tt.status, tt.want)
			h := dial(t, transport.HTTPOptions{URL: server.URL, Tokens: tt.pen})
			m, err := h.Call(t.Context(), "tools/list", json.RawMessage("{"+modern+"}"), nil)
			if tt.err == "" && (err != nil || len(m.Result) == 0) || tt.err != "" &&
				(err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%s, %v", m.Result, err)
			}
			if errors.Is(err, transport.ErrLost) || errors.Is(err, transport.ErrClosed) {
				t.Errorf("%v is of the connection", err)
			}
			if diff := cmp.Diff(tt.seen, seen()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.refused, tt.pen.refused); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSignedAcrossOrigins has a server that sends its callers on: the token goes to no other origin.
func TestSignedAcrossOrigins(t *testing.T) { overBoth(t, testSignedAcrossOrigins) }

func testSignedAcrossOrigins(t *testing.T) {
	elsewhere, seen := guarded(t, 401, "")
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/mcp", status)
		}))
		t.Cleanup(server.Close)
		p := &pen{tokens: []string{"a", "b"}}
		h := dial(t, transport.HTTPOptions{URL: server.URL, Tokens: p})
		if _, err := h.Call(t.Context(), "tools/list", json.RawMessage("{"+modern+"}"), nil); !errors.Is(err,
			transport.ErrRedirectRefused) {
			t.Errorf("%d: %v", status, err)
		}
		if len(seen()) != 0 || p.refused != nil {
			t.Errorf("%d: %q, %q", status, seen(), p.refused)
		}
	}
}

// TestSignedByMany has the token change while many requests are on their way: each is sent with one, or the other.
func TestSignedByMany(t *testing.T) { overBoth(t, testSignedByMany) }

func testSignedByMany(t *testing.T) {
	server, _ := guarded(t, 401, "Bearer b")
	p := &pen{tokens: []string{"a", "b"}}
	h := dial(t, transport.HTTPOptions{URL: server.URL, Tokens: steady{p}})
	var work sync.WaitGroup
	for range 50 {
		work.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if _, err := h.Call(ctx, "tools/list", json.RawMessage("{"+modern+"}"), nil); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
}

// A steady pen stays with its last token.
type steady struct{ *pen }

func (s steady) ReplaceToken(ctx context.Context, used string, status int, header http.Header,
	body []byte) (string, error) {
	if now, _ := s.Token(ctx); now != used {
		return now, nil
	}
	return s.pen.ReplaceToken(ctx, used, status, header, body)
}

// TestSignedFarewell has a server that wants to know who ends its session: nobody is sent to sign in for that, nor
// waits.
func TestSignedFarewell(t *testing.T) { overBoth(t, testSignedFarewell) }

func testSignedFarewell(t *testing.T) {
	server := legacy(t, nil, nil)
	p := &pen{tokens: []string{"a", "b"}}
	deleted := 0
	h := dial(t, transport.HTTPOptions{Tokens: p, Client: serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			deleted++
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		server(w, r)
	})})
	greet(t, h)
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if deleted != 1 || p.refused != nil {
		t.Errorf("the end of the session was told %d times, and refusals of it: %q", deleted, p.refused)
	}
}
