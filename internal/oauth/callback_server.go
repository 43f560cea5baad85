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

// maxCallback is the maximum size of an authorization response, in bytes.
const maxCallback = 8 << 10

// A callbackServer receives the browsers of people who have signed in. It has listeners on the loopback interface, the
// first of which is opened when the first sign-in begins. It finds the waiting sign-in by state and path; a request
// with an unknown state changes nothing.
type callbackServer struct {
	running *cancelGroup // cancels the callbacks that are running

	mu        sync.Mutex
	closed    bool
	listeners []*callbackListener
	waiting   map[string]callbackWaiter // by state
	work      sync.WaitGroup            // listeners; grows under mu, and not after closed
	answers   sync.WaitGroup            // requests until their page is sent; grows under mu, and not after closed
}

// A callbackWaiter is a sign-in that waits for a browser at a path.
type callbackWaiter struct {
	path       string
	onCallback func(context.Context, url.Values) error
}

// A callbackListener is one listener of a callbackServer.
type callbackListener struct {
	listener net.Listener
	server   *http.Server
	port     int
	fixed    bool // the port was asked for by number
}

// busyPortError is the error for a required port that is in use.
type busyPortError int

func (e busyPortError) Error() string {
	return fmt.Sprintf(
		"OAuth callback port %d unavailable; cannot fall back to a random port when oauth.redirectUri is set", int(e))
}

// listen returns a port on which browsers are received, and opens it if necessary. want is the preferred port, 0 for
// any. If must is true, another port does not do.
func (l *callbackServer) listen(want int, must bool) (port int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, errors.New("listen for the sign-in's callback: Drawbridge is shutting down")
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
		return 0, fmt.Errorf("listen for the sign-in's callback: %w", err)
	}
	r := &callbackListener{listener: listener, port: listener.Addr().(*net.TCPAddr).Port, fixed: want != 0}
	r.server = &http.Server{
		Handler: http.HandlerFunc(l.serveCallback), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: time.Minute,
		MaxHeaderBytes: 2 * maxCallback,
		// it would log request URLs, which hold codes
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	l.listeners = append(l.listeners, r)
	l.work.Go(func() { _ = r.server.Serve(listener) })
	return r.port, nil
}

// expect registers back to be called each time a browser arrives at path with state.
func (l *callbackServer) expect(state, path string, back func(context.Context, url.Values) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[state] = callbackWaiter{path, back}
}

// expects reports whether a sign-in waits for state.
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

// beginCallback returns the waiter of a state, and leave, which the caller must call when it is done with it. ok is
// false if the server is closed.
func (l *callbackServer) beginCallback(state string) (w callbackWaiter, leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return callbackWaiter{}, nil, false
	}
	l.answers.Add(1)
	return l.waiting[state], l.answers.Done, true
}

// close closes the ports, and the connections once the pages of the requests that have begun are sent: the end of a
// sign-in often is the end of its process.
func (l *callbackServer) close() {
	l.mu.Lock()
	listeners := l.listeners
	l.closed, l.listeners = true, nil
	l.mu.Unlock()
	for _, r := range listeners {
		_ = r.listener.Close()
	}
	l.answers.Wait()
	for _, r := range listeners {
		_ = r.server.Close()
	}
	l.work.Wait()
}

// serveCallback answers a browser. A prefetch, which a browser sends ahead of the person, completes no sign-in.
func (l *callbackServer) serveCallback(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
	host, _, err := net.SplitHostPort(r.Host)
	switch {
	case err != nil || !safehttp.IsLoopback(host):
		writePage(w, http.StatusForbidden, "This address can be opened only on the machine that Drawbridge runs on.")
		return
	case r.Method != http.MethodGet:
		writePage(w, http.StatusMethodNotAllowed,
			"This address takes only the GET request of a browser that returns from a sign-in.")
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
	waiter, leave, ok := l.beginCallback(values.Get("state"))
	if !ok {
		writePage(w, http.StatusServiceUnavailable, "Drawbridge is shutting down. Start the sign-in again.")
		return
	}
	defer leave()
	switch {
	case waiter.onCallback != nil && waiter.path != r.URL.Path, len(values) == 0:
		writePage(w, http.StatusNotFound, "Page not found.")
		return
	case waiter.onCallback == nil:
		writePage(w, http.StatusBadRequest,
			"State mismatch - possible CSRF attack. This sign-in has ended, or did not begin here. Start it again in Drawbridge.")
		return
	case !hasResponse(values):
		writePage(w, http.StatusBadRequest, "Missing authorization code")
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 2*safehttp.RequestTimeout)
	defer cancel()
	defer l.running.add(cancel)()
	if err := waiter.onCallback(ctx, values); err != nil {
		writePage(w, http.StatusBadRequest, signInError(err).Error())
		return
	}
	writePage(w, http.StatusOK, "Authorization successful. You can close this tab.")
}

// isPrefetch reports whether a browser sends the request ahead of the person. Each of the headers is used by some
// browser.
func isPrefetch(h http.Header) bool {
	return slices.ContainsFunc([]string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"}, func(name string) bool {
		purpose := h.Get(name)
		return strings.Contains(purpose, "prefetch") || strings.Contains(purpose, "preview") ||
			strings.Contains(purpose, "prerender")
	})
}

// hasResponse reports whether the parameters hold a code or an error.
func hasResponse(values url.Values) bool {
	return values.Get("code") != "" || values.Get("error") != ""
}

// writePage sends a complete page. It is on its way when writePage returns, so that the connection may be closed.
func writePage(w http.ResponseWriter, status int, text string) {
	page := "<!doctype html><meta charset=utf-8><title>Drawbridge</title><h1>Drawbridge</h1><p>" +
		html.EscapeString(text) + "</p>\n"
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, page)
	_ = http.NewResponseController(w).Flush() // it fails only if the browser has left
}

// parseCallback reads an authorization response from the query of the redirect. A repeated parameter is refused, since
// parsers may disagree on its value.
func parseCallback(query string) (url.Values, error) {
	if len(query) > maxCallback {
		return nil, userError("The authorization response is too long.")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, userError("The authorization response is not a valid query.")
	}
	for _, name := range []string{"state", "code", "iss", "error", "error_description"} {
		if len(values[name]) > 1 {
			return nil, userError("The authorization response has a duplicate parameter.")
		}
	}
	return values, nil
}

// parsePasted reads the text that a person pastes: the whole address that the browser ended at, or only its query. A
// text without a code or an error is refused, so that the state is not used up.
func parsePasted(text string) (url.Values, error) {
	if len(text) > 2*maxCallback {
		return nil, userError("The authorization response is too long.")
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
