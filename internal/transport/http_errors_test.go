package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A httpReply is what a Do came back with; the error as the names of what it is.
type httpReply struct {
	Answer string
	Is     []string
}

func do(t *testing.T, c transport.Conn, method, params string, in transport.Handler) (httpReply, error) {
	t.Helper()
	m, err := c.Call(t.Context(), method, json.RawMessage(params), in)
	var r httpReply
	if m.Result != nil || m.Error != nil {
		r.Answer = string(m.Result) + string(m.Error)
	}
	for name, target := range map[string]error{
		"closed": transport.ErrClosed, "lost": transport.ErrLost, "session": transport.ErrSessionExpired,
		"redirect": transport.ErrRedirectRefused, "too long": mcp.ErrTooLong,
	} {
		if errors.Is(err, target) {
			r.Is = append(r.Is, name)
		}
	}
	if _, ok := errors.AsType[*transport.HTTPStatusError](err); ok {
		r.Is = append(r.Is, "status")
	}
	if err != nil && r.Is == nil {
		r.Is = []string{err.Error()}
	}
	return r, err
}

// sorted compares lists of names as sets.
var sorted = cmp.Transformer("sorted", func(s []string) map[string]bool {
	set := map[string]bool{}
	for _, x := range s {
		set[x] = true
	}
	return set
})

// TestAnAddressThatIsNotCalledHeardNothing: a request that is refused by where its server's name leads was not sent,
// so that nobody has to look whether it had an effect.
func TestAnAddressThatIsNotCalledHeardNothing(t *testing.T) {
	overBoth(t, testAnAddressThatIsNotCalledHeardNothing)
}

func testAnAddressThatIsNotCalledHeardNothing(t *testing.T) {
	for address, own := range map[string]bool{"http://169.254.169.254/mcp": true, "http://[fd00:ec2::254]/mcp": true} {
		h := dial(t, transport.HTTPOptions{URL: address, AllowLocalNetwork: own})
		_, err := h.Call(t.Context(), "ping", nil, nil)
		if errors.Is(err, transport.ErrLost) || !errors.Is(err, transport.ErrClosed) ||
			transport.FaultCodeOf(err) != drawbridge.PolicyBlocked {
			t.Errorf("%s: %v, code %s", address, err, transport.FaultCodeOf(err))
		}
	}
}

func TestStatusError(t *testing.T) {
	h := dial(t, transport.HTTPOptions{Client: serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="x"`)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(401)
		_, _ = io.WriteString(w, strings.Repeat("a", 5000))
	})})
	_, err := h.Call(t.Context(), "ping", nil, nil)
	got, ok := errors.AsType[*transport.HTTPStatusError](err)
	if !ok {
		t.Fatal(err)
	}
	want := &transport.HTTPStatusError{Code: 401, Body: []byte(strings.Repeat("a", 4096)),
		Challenge: `Bearer resource_metadata="x"`, RetryAfter: 7 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" || err.Error() != "status 401 Unauthorized" {
		t.Errorf("%v %s", err, diff)
	}
}

// TestSessionExpires has the ways in which servers say that they know a session no more: the connection ends, and says
// that the request was not carried out.
func TestStatusCodes(t *testing.T) {
	for status, want := range map[int]drawbridge.FaultCode{
		401: drawbridge.AuthFailure, 403: drawbridge.AuthFailure, 429: drawbridge.RateLimited,
		404: drawbridge.NotFound, 405: drawbridge.NotFound, 501: drawbridge.NotFound,
		408: drawbridge.Transient, 502: drawbridge.Transient, 503: drawbridge.Transient, 504: drawbridge.Transient,
		400: drawbridge.ServerError, 418: drawbridge.ServerError, 500: drawbridge.ServerError,
	} {
		if got := transport.FaultCodeOf(fmt.Errorf("connect: %w",
			&transport.HTTPStatusError{Code: status})); got != want {
			t.Errorf("status %d: %v, want %v", status, got, want)
		}
	}
}

func TestSessionExpires(t *testing.T) { overBoth(t, testSessionExpires) }

func testSessionExpires(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		status     int
	}{
		{"the specification", "", 404},
		{"the Go SDK", "session not found\n", 404},
		{"the TypeScript SDK", `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`,
			404},
		{"server-everything",
			`{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			post := func(w http.ResponseWriter, r *http.Request) { say(w, tt.status, plain, read(t, r), tt.body) }
			h := dial(t, transport.HTTPOptions{Client: serve(t, legacy(t, post, nil))})
			greet(t, h)
			got, _ := do(t, h, mcp.MethodToolsCall, `{}`, nil)
			if diff := cmp.Diff(httpReply{Is: []string{"session"}}, got, sorted); diff != "" {
				t.Error(diff)
			}
			<-h.Done()
			if !errors.Is(h.Err(), transport.ErrSessionExpired) {
				t.Errorf("Err = %v", h.Err())
			}
			got, err := do(t, h, mcp.MethodToolsCall, `{}`, nil)
			if diff := cmp.Diff(httpReply{Is: []string{"session", "closed"}}, got, sorted); diff != "" ||
				err.Error() != "session expired" {
				t.Errorf("the next request: %v %s", err, diff)
			}
			if err := h.Notify(t.Context(), "x", nil); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("the next notification: %v", err)
			}
		})
	}
}

// TestNoSession has a server without sessions: a status of 404 is nothing but that.
func TestNoSession(t *testing.T) { overBoth(t, testNoSession) }

func testNoSession(t *testing.T) {
	h := dial(t, transport.HTTPOptions{Client: serve(t, func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(404)
	})})
	got, err := do(t, h, mcp.MethodInitialize, hello, nil)
	if diff := cmp.Diff(httpReply{Is: []string{"status"}}, got, sorted); diff != "" || h.Err() != nil {
		t.Errorf("%v %v %s", err, h.Err(), diff)
	}
}

// TestNotificationFindsNoSession shows that the session's end is noticed by whatever message meets it.
func TestNotificationFindsNoSession(t *testing.T) { overBoth(t, testNotificationFindsNoSession) }

func testNotificationFindsNoSession(t *testing.T) {
	h := dial(t, transport.HTTPOptions{Client: serve(t,
		legacy(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, nil))})
	greet(t, h)
	if err := h.Notify(t.Context(), mcp.NoteRootsChanged, nil); !errors.Is(err, transport.ErrSessionExpired) {
		t.Errorf("got %v", err)
	}
	<-h.Done()
}

func TestUnreachable(t *testing.T) { overBoth(t, testUnreachable) }

func testUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	noTLS := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(noTLS.Close)
	badCert := httptest.NewUnstartedServer(http.NotFoundHandler())
	badCert.Config.ErrorLog = log.New(io.Discard, "", 0)
	badCert.StartTLS()
	t.Cleanup(badCert.Close)
	for _, tt := range []struct{ url, text string }{
		{"http://" + address + "/mcp?key=secret", "connection refused"},
		{strings.Replace(noTLS.URL, "http:", "https:", 1) + "?key=secret", "HTTP response to HTTPS client"},
		{badCert.URL + "?key=secret", "certificate"},
		{"ftp://x/?key=secret", "parse url: the scheme must be http or https"},
		{"http://[x?key=secret", "parse url: "},
		{"http:///mcp", "parse url: the host is missing"},
	} {
		h := dial(t, transport.HTTPOptions{URL: tt.url})
		got, err := do(t, h, "ping", `{}`, nil)
		if diff := cmp.Diff(httpReply{Is: []string{"closed"}}, got, sorted); diff != "" {
			t.Errorf("%s: %v %s", tt.url, err, diff)
		}
		if text := err.Error(); !strings.Contains(text, tt.text) || strings.Contains(text, "secret") {
			t.Errorf("%s: %v, want %q and no secret", tt.url, err, tt.text)
		}
		if h.Err() != nil {
			t.Errorf("the connection ended: %v", h.Err())
		}
	}
}

// TestRedirects has two servers: what belongs to the first never reaches the second.
func TestRedirects(t *testing.T) { overBoth(t, testRedirects) }

func testRedirects(t *testing.T) {
	leaked := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked <- r.URL.Path }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/mcp":
			http.Redirect(w, r, "/mcp/", http.StatusTemporaryRedirect)
		case "/away":
			http.Redirect(w, r, other.URL+"/there", http.StatusTemporaryRedirect)
		case "/see":
			http.Redirect(w, r, "/mcp/", http.StatusSeeOther)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusPermanentRedirect)
		default:
			if r.Header.Get("Authorization") != "Bearer x" {
				t.Error("a header was lost")
			}
			say(w, 200, plain, read(t, r), answer)
		}
	}))
	t.Cleanup(server.Close)
	refused := httpReply{Is: []string{"redirect"}}
	for _, tt := range []struct {
		path, text string
		want       httpReply
	}{
		{"/mcp", "", httpReply{Answer: `{"ok":true}`}},
		{"/away", "redirect not followed: it leads to another origin, " + other.URL, refused},
		{"/see", "redirect not followed: it would turn POST into GET", refused},
		{"/loop", "redirect not followed: there are more than 5", refused},
	} {
		h := dial(t, transport.HTTPOptions{URL: server.URL + tt.path,
			Headers: http.Header{"Authorization": {"Bearer x"}}})
		got, err := do(t, h, "ping", `{}`, nil)
		if diff := cmp.Diff(tt.want, got, sorted); diff != "" || err != nil && err.Error() != tt.text {
			t.Errorf("%s: %v %s", tt.path, err, diff)
		}
	}
	if len(leaked) > 0 {
		t.Errorf("the other server was asked for %s", <-leaked)
	}
}

// TestCancel has a server that does not even begin to answer. A legacy one is told; to a modern one the end of the
// exchange says it.
func TestCancel(t *testing.T) { overBoth(t, testCancel) }

func testCancel(t *testing.T) {
	for _, generation := range []string{"legacy", "modern"} {
		synctest.Test(t, func(t *testing.T) {
			told := make(chan string, 1)
			post := func(w http.ResponseWriter, r *http.Request) {
				if m := read(t, r); m.Method == mcp.NoteCancelled {
					told <- string(m.Params)
					w.WriteHeader(202)
					return
				}
				<-r.Context().Done()
				if generation == "modern" {
					told <- "gone"
				}
			}
			h := dial(t, transport.HTTPOptions{Client: serve(t, legacy(t, post, nil))})
			params, want := `{`+modern+`}`, "gone"
			if generation == "legacy" {
				greet(t, h)
				params, want = `{}`, `{"requestId":2,"reason":"timeout"}`
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begun := time.Now()
			if _, err := h.Call(ctx, mcp.MethodToolsCall, json.RawMessage(params),
				nil); err != context.DeadlineExceeded {
				t.Errorf("%s: %v", generation, err)
			}
			if took := time.Since(begun); took != time.Minute {
				t.Errorf("%s: it took %v", generation, took)
			}
			if got := <-told; got != want {
				t.Errorf("%s: the server was told %s", generation, got)
			}
		})
	}
}

// TestClose ends a call under way and the session; the server hears of it.
func TestClose(t *testing.T) { overBoth(t, testClose) }

func testClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deleted := make(chan string, 1)
		post := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		server := legacy(t, post, nil)
		h := dial(t, transport.HTTPOptions{Client: serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				deleted <- r.Header.Get("Mcp-Session-Id") + " " + r.Header.Get("Mcp-Protocol-Version")
			}
			server(w, r)
		})})
		greet(t, h)
		ended := make(chan httpReply)
		go func() {
			got, _ := do(t, h, mcp.MethodToolsCall, `{}`, nil)
			ended <- got
		}()
		synctest.Wait()
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(httpReply{Is: []string{"lost"}}, <-ended, sorted); diff != "" {
			t.Error(diff)
		}
		if got := <-deleted; got != "s1 2025-11-25" {
			t.Errorf("the server heard %q", got)
		}
		if _, err := h.Call(t.Context(), "ping", nil, nil); !errors.Is(err, transport.ErrClosed) || h.Err() != nil {
			t.Errorf("afterwards: %v, Err %v", err, h.Err())
		}
	})
}
