package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// The paths at which Serve responds to health checks and metrics collectors.
const (
	// HealthPath is the path for health checks. The response has the status 200 while the server accepts calls, and 503
	// while it is shutting down. No token is required.
	HealthPath = "/healthz"
	// MetricsPath is the path for the numbers of sessions and calls of each client, in the text format of Prometheus.
	// The scope ScopeMetrics is required.
	MetricsPath = "/metrics"
)

// ScopeMetrics is the scope that a caller needs to read the numbers of sessions and calls of all clients.
const ScopeMetrics drawbridge.Scope = "metrics"

// serveHealth responds to a health check.
func (d *httpHandler) serveHealth(w http.ResponseWriter, r *http.Request) {
	if !isRead(w, r) {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if !d.gate.enter() {
		http.Error(w, "Service Unavailable: closing", http.StatusServiceUnavailable)
		return
	}
	defer d.gate.leave()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n") // an error means that the client is gone
}

// serveMetrics responds with the activity of each client since the server was created.
func (d *httpHandler) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if !d.checkHostAndOrigin(w, r) || !isRead(w, r) {
		return
	}
	v, ok := d.authenticate(w, r)
	if !ok {
		return
	}
	if !v.caller.HasScopes([]drawbridge.Scope{ScopeMetrics}) {
		http.Error(w, "Forbidden: the token needs the scope metrics", http.StatusForbidden)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = io.WriteString(w, formatMetrics(d.s.Activity())) // an error means that the client is gone
}

// isRead reports whether the method of a request is GET or HEAD. If it returns false, it has already sent an error
// response.
func isRead(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	return false
}

// formatMetrics returns the activities of clients in the text format of Prometheus, version 0.0.4.
func formatMetrics(all []ClientActivity) string {
	var text strings.Builder
	for _, m := range []struct {
		name, kind, help string
		value            func(ClientActivity) int64
	}{
		{"drawbridge_sessions", "gauge", "Stateful sessions that are open.", func(a ClientActivity) int64 { return int64(a.Sessions) }},
		{"drawbridge_calls_total", "counter", "Calls of tools and other requests that were decided on.",
			func(a ClientActivity) int64 { return a.Calls }},
		{"drawbridge_errors_total", "counter", "Those that ended in an error of Drawbridge or of a server.",
			func(a ClientActivity) int64 { return a.Errors }},
	} {
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		for _, a := range all {
			fmt.Fprintf(&text, "%s{principal=%s,client=%s,via=%s} %d\n", m.name, metricLabel(a.Principal), metricLabel(a.Client),
				metricLabel(a.Via), m.value(a))
		}
	}
	return text.String()
}

// metricLabel returns a text as the quoted value of a Prometheus label.
func metricLabel(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(text, "\uFFFD")) + `"`
}
