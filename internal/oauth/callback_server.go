package oauth

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// maxCallback is the most that an answer may be.
const maxCallback = 8 << 10

// A callbackServer is where people come back to from signing in: a listener on the loopback interface, which is opened
// when the first sign-in is begun, and its doors by port and path. What comes in under no known state changes nothing.
type callbackServer struct {
	ctx context.Context // what is begun here ends with it

	mu        sync.Mutex
	closed    bool
	listeners []*callbackListener
	waiting   map[string]callbackWaiter // by state
	work      sync.WaitGroup            // listeners and answers; grows under mu, and not after closed
}

// A callbackWaiter is for somebody who comes back at a path.
type callbackWaiter struct {
	path       string
	onCallback func(context.Context, url.Values) error
}

// A callbackListener is one listener of the lobby.
type callbackListener struct {
	listener net.Listener
	server   *http.Server
	port     int
	fixed    bool // somebody wanted this very port
}

// busyPortError says that a port that must be had is not to be had.
type busyPortError int

func (e busyPortError) Error() string {
	return fmt.Sprintf(
		"OAuth callback port %d unavailable; cannot fall back to a random port when oauth.redirectUri is set", int(e))
}

// listen gives a port on which people can come back. Want is the port to have if it is free, 0 for any; must says that
// no other does.
func (l *callbackServer) listen(want int, must bool) (port int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, errors.New("the desk is closed")
	}
	for _, r := range l.listeners {
		if r.port == want || want == 0 && !r.fixed {
			return r.port, nil
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(want)))
	if err != nil && want != 0 {
		if must {
			return 0, busyPortError(want)
		}
		for _, r := range l.listeners {
			if !r.fixed {
				return r.port, nil
			}
		}
		want = 0
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return 0, fmt.Errorf("open a port for the way back: %w", err)
	}
	r := &callbackListener{listener: listener, port: listener.Addr().(*net.TCPAddr).Port, fixed: want != 0}
	r.server = &http.Server{
		Handler: http.HandlerFunc(l.serveCallback), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: time.Minute,
		MaxHeaderBytes: 2 * maxCallback,
		ErrorLog:       slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // it would say what was asked for
	}
	l.listeners = append(l.listeners, r)
	l.work.Go(func() { _ = r.server.Serve(listener) })
	return r.port, nil
}

// expect has back called when somebody comes back at a path under a state, once for each time they do.
func (l *callbackServer) expect(state, path string, back func(context.Context, url.Values) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[state] = callbackWaiter{path, back}
}

// expects says whether somebody is expected under a state.
func (l *callbackServer) expects(state string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting[state].onCallback != nil
}

func (l *callbackServer) forget(state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, state)
}

// beginCallback gives what waits for a state, and leave, to be called when that is done. It says false where the lobby
// is closed.
func (l *callbackServer) beginCallback(state string) (w callbackWaiter, leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return callbackWaiter{}, nil, false
	}
	l.work.Add(1)
	return l.waiting[state], l.work.Done, true
}

func (l *callbackServer) close() {
	l.mu.Lock()
	rooms := l.listeners
	l.closed, l.listeners = true, nil
	l.mu.Unlock()
	for _, r := range rooms {
		_ = r.server.Close()
	}
	l.work.Wait()
}

// serveCallback answers a browser. A request that a browser makes ahead of the person counts for nothing.
func (l *callbackServer) serveCallback(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
	host, _, err := net.SplitHostPort(r.Host)
	switch {
	case err != nil || !safehttp.IsLoopback(host):
		writePage(w, http.StatusForbidden, "This address is not for others.")
		return
	case r.Method != http.MethodGet:
		writePage(w, http.StatusMethodNotAllowed, "This address is for a browser that comes back from signing in.")
		return
	case isPrefetch(r.Header):
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	values, err := parseCallback(r.URL.RawQuery)
	if err != nil {
		writePage(w, http.StatusBadRequest, err.Error())
		return
	}
	there, leave, ok := l.beginCallback(values.Get("state"))
	if !ok {
		return
	}
	defer leave()
	switch {
	case there.onCallback != nil && there.path != r.URL.Path, len(values) == 0:
		writePage(w, http.StatusNotFound, "There is nothing here.")
		return
	case there.onCallback == nil:
		writePage(w, http.StatusBadRequest,
			"State mismatch - possible CSRF attack. This sign-in is over, or was never begun here.")
		return
	case !hasResponse(values):
		writePage(w, http.StatusBadRequest, "Missing authorization code")
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 2*safehttp.RequestTimeout)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	if err := there.onCallback(ctx, values); err != nil {
		writePage(w, http.StatusBadRequest, signInError(err).Error())
		return
	}
	writePage(w, http.StatusOK, "Authorization successful. You can close this tab.")
}

// isPrefetch says whether a browser asks ahead of the person, in the words of any of them.
func isPrefetch(h http.Header) bool {
	return slices.ContainsFunc([]string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"}, func(name string) bool {
		said := h.Get(name)
		return strings.Contains(said, "prefetch") || strings.Contains(said, "preview") ||
			strings.Contains(said, "prerender")
	})
}

// hasResponse says whether an answer says anything at all.
func hasResponse(values url.Values) bool {
	return values.Get("code") != "" || values.Get("error") != ""
}

func writePage(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<!doctype html><meta charset=utf-8><title>Drawbridge</title><h1>Drawbridge</h1><p>"+
		html.EscapeString(text)+"</p>\n")
}

// parseCallback reads what an authorization server answers by way of the browser. A parameter that stands there twice
// has no one meaning.
func parseCallback(query string) (url.Values, error) {
	if len(query) > maxCallback {
		return nil, userError("The answer is too long.")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, userError("The answer cannot be read.")
	}
	for _, name := range []string{"state", "code", "iss", "error", "error_description"} {
		if len(values[name]) > 1 {
			return nil, userError("The answer says something twice.")
		}
	}
	return values, nil
}

// parsePasted reads what a person brings back by hand: the whole address that the browser ended at, or what of it is
// behind the question mark. What says nothing uses nothing up.
func parsePasted(text string) (url.Values, error) {
	if len(text) > 2*maxCallback {
		return nil, userError("The answer is too long.")
	}
	text = strings.Trim(strings.TrimSpace(text), `"'<>`)
	text, _, _ = strings.Cut(text, "#")
	if _, query, ok := strings.Cut(text, "?"); ok {
		text = query
	}
	values, err := parseCallback(text)
	if err == nil && !hasResponse(values) {
		err = userError("Missing authorization code: paste the whole address that the browser ended at")
	}
	return values, err
}
