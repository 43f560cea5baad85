package server

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// checkHostAndOrigin refuses a request under a foreign host name, which a DNS rebinding page sends, and one from a page
// of another origin. It reports whether the request may continue.
func (d *httpHandler) checkHostAndOrigin(w http.ResponseWriter, r *http.Request) bool {
	if !d.hostAllowed(r) {
		http.Error(w, foreignHostText, http.StatusForbidden)
		return false
	}
	if !d.originAllowed(w, r) {
		http.Error(w, "Forbidden: requests from pages of this origin are not allowed", http.StatusForbidden)
		return false
	}
	return true
}

const foreignHostText = "Forbidden: the Host header is not a name of this machine"

// hostAllowed reports whether a request over loopback names a host of this machine, or the public host for which a
// proxy forwards requests.
func (d *httpHandler) hostAllowed(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !isLoopbackAddr(addr) || addr.Network() == "unix" || d.host != "" && strings.EqualFold(r.Host, d.host) {
		return true
	}
	return isLoopbackHost(r.Host)
}

// originAllowed reports whether the page that sent a request, if any, may call this server: a page of the own host, or
// of an allowed origin. For the latter it sets the CORS headers.
func (d *httpHandler) originAllowed(w http.ResponseWriter, r *http.Request) bool {
	origins := r.Header["Origin"]
	switch {
	case len(origins) == 0:
		// a neighbour's port is same-site
		return slices.Contains([]string{"", "same-origin", "none"}, r.Header.Get("Sec-Fetch-Site"))
	case len(origins) > 1:
		return false
	}
	origin := origins[0]
	if slices.ContainsFunc(d.s.o.Origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
		h.Add("Vary", "Origin")
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// isLoopbackAddr reports whether only this machine reaches an address.
func isLoopbackAddr(addr net.Addr) bool {
	return addr.Network() == "unix" || isLoopbackHost(addr.String())
}
