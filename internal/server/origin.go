package server

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// checkHostAndOrigin refuses what must not be read: a request under a foreign host name, which a page that rebinds its
// own name to this machine sends, and one from a page of another origin. It says whether the request may go on.
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

// hostAllowed says whether a request that came in by loopback names a host of this machine, or the one that the door
// is known by beyond it, from where something passes requests on.
func (d *httpHandler) hostAllowed(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !isLoopbackAddr(addr) || addr.Network() == "unix" || d.host != "" && strings.EqualFold(r.Host, d.host) {
		return true
	}
	return isLoopbackHost(r.Host)
}

// originAllowed says whether the page that a request comes from, if any, may call us: one of our own host, or one of an
// origin that is allowed, whose browser is told so.
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

// isLoopbackAddr says whether only this machine reaches an address.
func isLoopbackAddr(addr net.Addr) bool {
	return addr.Network() == "unix" || isLoopbackHost(addr.String())
}
