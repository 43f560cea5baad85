package signin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	fetchTime    = 20 * time.Second
	maxRedirects = 5
)

// Guarded gives a client for what a server at that address names: metadata, endpoints. It reaches addresses that are not
// public only where the server itself is on one: else a server far away could have us call what is near. Redirects stay
// within an origin; everything is over in some seconds.
func Guarded(address string) *http.Client {
	g := &guard{proxies: map[string]bool{}}
	if u, err := url.Parse(address); err == nil {
		g.host = u.Hostname()
	}
	dialer := &net.Dialer{Timeout: fetchTime / 2, ControlContext: g.control}
	transport := &http.Transport{
		Proxy: g.proxy, DialContext: dialer.DialContext, TLSHandshakeTimeout: fetchTime / 2, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 2, IdleConnTimeout: 10 * time.Second, MaxResponseHeaderBytes: 256 << 10, DisableKeepAlives: true,
	}
	return &http.Client{Transport: transport, Timeout: fetchTime, CheckRedirect: withinOrigin}
}

func withinOrigin(req *http.Request, via []*http.Request) error {
	switch first := via[0]; {
	case originOf(req.URL.String()) != originOf(first.URL.String()):
		return errors.New("redirect to another origin refused")
	case req.Method != first.Method:
		return errors.New("redirect of a request with a body refused")
	case len(via) > maxRedirects:
		return errors.New("too many redirects")
	}
	return nil
}

// A guard judges the addresses that are dialled.
type guard struct {
	host string

	mu      sync.Mutex
	proxies map[string]bool // that the environment names: they are the person's own
	local   *bool           // whether the server itself is on an address that is not public
}

func (g *guard) proxy(req *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(req)
	if u != nil {
		g.mu.Lock()
		g.proxies[u.Hostname()] = true
		g.mu.Unlock()
	}
	return u, err
}

func (g *guard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: no address", address)
	}
	if isPublic(at.Addr()) || g.proxied() || g.isLocal(ctx) {
		return nil
	}
	return errNotPublic
}

var errNotPublic = errors.New("an address that is not public is not called on the word of a server that is")

func (g *guard) proxied() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.proxies) > 0
}

// isLocal says whether the server itself is on an address that is not public. It is found out once.
func (g *guard) isLocal(ctx context.Context) bool {
	g.mu.Lock()
	known := g.local
	g.mu.Unlock()
	if known != nil {
		return *known
	}
	local := g.host == "" || strings.EqualFold(g.host, "localhost")
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", g.host)
	if err == nil {
		local = local || len(addrs) > 0
		for _, a := range addrs {
			local = local && !isPublic(a)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.local = &local
	return local
}

// special are the ranges that netip has no word for (the registries of special-purpose addresses).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("3fff::/20"), netip.MustParsePrefix("fec0::/10"),
}

func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// isLoopback says whether a host is this machine by its name.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
