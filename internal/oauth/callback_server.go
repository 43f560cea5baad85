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

// A callbackServer receives the requests of browsers that a sign-in page redirects back to Drawbridge. It listens on
// the loopback interface as soon as the first sign-in begins. The parameter state of a request identifies the sign-in.
// The path must be the path that expect registered for that sign-in. A request with an unknown state is refused.
type callbackServer struct {
	running *cancelGroup // cancels the callbacks that are running

	mu        sync.Mutex
	closed    bool
	listeners []*callbackListener
	waiting   map[string]callbackWaiter // by state
	work      sync.WaitGroup            // counts listeners; increased only under mu, before closed is set
	answers   sync.WaitGroup            // counts requests whose response is not sent yet; increased like work
}

// A callbackWaiter is a sign-in that waits for a browser request with the given path.
type callbackWaiter struct {
	path       string
	onCallback func(context.Context, url.Values) error
}

// A callbackListener is one listener of a callbackServer.
type callbackListener struct {
	listener net.Listener
	server   *http.Server
	port     int
	fixed    bool // opened for this port number; sign-ins that accept any port do not use it
}

// busyPortError is the error for a required port that is in use.
type busyPortError int

func (e busyPortError) Error() string {
	return fmt.Sprintf(
		"OAuth callback port %d unavailable; cannot fall back to a random port when oauth.redirectUri is set", int(e))
}

// listen returns the port of an open listener, or opens a listener. want is the preferred port; 0 means any port. If
// the port want cannot be opened, listen returns an error if must is true; otherwise it returns another port.
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
		// the server would log request URLs, which contain codes
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	l.listeners = append(l.listeners, r)
	l.work.Go(func() { _ = r.server.Serve(listener) })
	return r.port, nil
}

// expect registers the function back. Until forget is called, back is called for each browser request with the given
// state and path.
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

// beginCallback returns the sign-in that waits for a browser request with the given state. If the state is unknown, w
// is the zero value. The caller must call leave after it has sent the response, because close waits for all responses.
// If the callbackServer is closed, ok is false and leave is nil.
func (l *callbackServer) beginCallback(state string) (w callbackWaiter, leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return callbackWaiter{}, nil, false
	}
	l.answers.Add(1)
	return l.waiting[state], l.answers.Done, true
}

// close closes the listeners, waits until the responses of the running requests are sent, and closes the connections.
// It waits because a process often exits as soon as its sign-in ends, and the browser must still receive its page.
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

// serveCallback handles the browser request that ends a sign-in. It refuses a prefetch, which a browser sends before
// the person opens the page: the state can be used only once, so the person's own request would fail.
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

// isPrefetch reports whether a request with the headers h is a prefetch, which a browser sends before the person opens
// the page. It reads four headers, because browsers differ in the header that they use.
func isPrefetch(h http.Header) bool {
	return slices.ContainsFunc([]string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"}, func(name string) bool {
		purpose := h.Get(name)
		return strings.Contains(purpose, "prefetch") || strings.Contains(purpose, "preview") ||
			strings.Contains(purpose, "prerender")
	})
}

// hasResponse reports whether the parameters of a redirect contain an authorization code or an OAuth error.
func hasResponse(values url.Values) bool {
	return values.Get("code") != "" || values.Get("error") != ""
}

// writePage sends an HTML page that shows text, and flushes it. The caller may then close the connection.
func writePage(w http.ResponseWriter, status int, text string) {
	page := "<!doctype html><meta charset=utf-8><title>Drawbridge</title><h1>Drawbridge</h1><p>" +
		html.EscapeString(text) + "</p>\n"
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, page)
	_ = http.NewResponseController(w).Flush() // it fails only if the browser has disconnected
}

// parseCallback parses the query of a redirect as an authorization response. It returns an error if an OAuth parameter
// occurs twice, since parsers may disagree on its value.
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

// parsePasted parses the text that a person pastes: the whole address at which the browser ended, or only its query. It
// returns an error for a text without a code or an OAuth error. The sign-in then stays pending, and the person can
// paste again.
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
