package server

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// checkHostAndOrigin refuses a request for a foreign host name, which may be a DNS rebinding attack. It also refuses a
// request from a page of a foreign origin. If it returns false, it has already sent an error response.
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

// hostAllowed reports whether the Host header of a request is acceptable. For a request over loopback, it must name
// this machine, or the public host for which a proxy forwards requests. For a request over another address, any host is
// acceptable.
func (d *httpHandler) hostAllowed(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !isLoopbackAddr(addr) || addr.Network() == "unix" || d.host != "" && strings.EqualFold(r.Host, d.host) {
		return true
	}
	return isLoopbackHost(r.Host)
}

// originAllowed reports whether a request may come from its web page. It returns true for a request without a page, for
// a page of the same host, and for a page of Options.Origins. For a page of Options.Origins it also sets the CORS
// headers.
func (d *httpHandler) originAllowed(w http.ResponseWriter, r *http.Request) bool {
	origins := r.Header["Origin"]
	switch {
	case len(origins) == 0:
		// "same-site" is refused: it includes other ports of this host
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

// isLoopbackAddr reports whether an address can be reached only from this machine.
func isLoopbackAddr(addr net.Addr) bool {
	return addr.Network() == "unix" || isLoopbackHost(addr.String())
}
