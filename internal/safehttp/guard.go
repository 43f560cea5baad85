// Package safehttp calls where a server's word leads: its metadata, its authorization server. Whoever says where is
// not believed that we may go there.
//
// It promises that such a call reaches nothing that is near us on the word of a server that is far, nor ever the
// places where machines are told their secrets; that it crosses from one origin to another by no redirect, and that it
// ends.
package safehttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// RequestTimeout is how long one exchange may take.
const RequestTimeout = 20 * time.Second

const maxRedirects = 5

// NewClient gives a client for what a server at that address names: metadata, endpoints. It reaches addresses that are
// not public only where the server itself is on one, or where they are those of the hosts that its row names: else a
// server far away could have us call what is near. Redirects stay within an origin; everything is over in some seconds.
func NewClient(address string, named ...string) *http.Client {
	g := newGuard(address, named...)
	transport := &http.Transport{
		Proxy: g.proxyFor, DialContext: g.dial, TLSHandshakeTimeout: RequestTimeout / 2, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 2, IdleConnTimeout: 10 * time.Second, MaxResponseHeaderBytes: 256 << 10,
		DisableKeepAlives: true,
	}
	return &http.Client{Transport: transport, Timeout: RequestTimeout, CheckRedirect: checkRedirect}
}

// ProxyAndDialer gives how the server at that address itself is reached: the proxy of a request, and a dialler. Where
// its row is the person's own, or its host says that it is near, that may be anywhere but where machines are told
// their secrets. Else it is public: whoever approved the row was shown a name, and what it leads to may be another's
// choice, at each call anew. What they refuse is a *RefusedError.
func ProxyAndDialer(address string, own bool) (proxy func(*http.Request) (*url.URL, error), dial func(context.Context,
	string, string) (net.Conn, error)) {
	g := newServerGuard(address, own)
	return g.proxyFor, g.dial
}

func newServerGuard(address string, own bool) *dialGuard {
	g, far := newGuard(address), false
	g.callsServerItself, g.allowsLocal, g.serverIsLocal = true, own || isLocalName(g.host), &far
	return g
}

// isLocalName says whether a host is on this machine or network by its name, or an address: one who was shown it
// knows. What resolvers take for an address and people do not (2130706433, 0x7f.1, letters of another width) says
// nothing.
func isLocalName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	last := host[strings.LastIndex(host, ".")+1:]
	if last == "" || last[0] >= '0' && last[0] <= '9' || strings.ContainsFunc(host,
		func(r rune) bool { return r >= 0x80 }) {
		return false
	}
	for _, end := range []string{".localhost", ".local", ".internal", ".home.arpa"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return !strings.Contains(host, ".")
}

// A RefusedError is for a server that is not called where its name leads.
type RefusedError struct{ why string }

func (e *RefusedError) Error() string { return e.why }

// FaultCode says that to try again is of no use.
func (e *RefusedError) FaultCode() drawbridge.FaultCode { return drawbridge.PolicyBlocked }

// asRefused says of a server itself why it is not called; of what one names it was said.
func (g *dialGuard) asRefused(err error) error {
	switch {
	case !g.callsServerItself || !errors.Is(err, ErrNotPublic):
		return err
	case g.allowsLocal:
		return &RefusedError{"no server is called at an address where machines are told their secrets, or that is nobody's"}
	}
	return &RefusedError{"its name leads to an address that is not public, and the approval showed no such address " +
		"(a row of your own may lead there: drawbridge mcp add -s user)"}
}

func newGuard(address string, named ...string) *dialGuard {
	g := &dialGuard{proxies: map[string]bool{}, namedHosts: map[string]bool{},
		lookupIPs: net.DefaultResolver.LookupNetIP, proxyFromEnv: http.ProxyFromEnvironment}
	if u, err := url.Parse(address); err == nil {
		g.host = u.Hostname()
		if u.Scheme == "https" {
			g.port = cmp.Or(u.Port(), "443")
		}
	}
	g.verifyHost = g.verifyHostByTLS
	for _, address := range named {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			g.namedHosts[strings.ToLower(u.Hostname())] = true
		}
	}
	return g
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	switch first := via[0]; {
	case Origin(req.URL.String()) != Origin(first.URL.String()):
		return errors.New("redirect to another origin refused")
	case req.Method != first.Method:
		return errors.New("redirect of a request with a body refused")
	case len(via) > maxRedirects:
		return errors.New("too many redirects")
	}
	return nil
}

// A dialGuard judges the addresses that are dialled.
type dialGuard struct {
	// host is that of the server, port the one at which it speaks TLS; empty where it does not. Roots are those that
	// its certificate must lead to; nil is the system's.
	host, port string
	roots      *x509.CertPool
	// verifyHost says whether a server at an address is the one of that host.
	verifyHost func(context.Context, netip.Addr) bool
	// namedHosts are the hosts that the row names, lookup resolves names, environment gives the proxy of a request.
	namedHosts   map[string]bool
	lookupIPs    func(ctx context.Context, network, host string) ([]netip.Addr, error)
	proxyFromEnv func(*http.Request) (*url.URL, error)
	// resolver is that of what is dialled; nil is the system's.
	resolver *net.Resolver
	// callsServerItself says that it is the server itself that is called, and not where its word leads; anywhere that
	// it may be near.
	callsServerItself, allowsLocal bool

	mu      sync.Mutex
	proxies map[string]bool // hosts, with their ports, that the environment names: they are the person's own
	// whether the server itself is on an address that is not public; nil is not found out yet
	serverIsLocal *bool
}

// proxyFor gives the proxy of a request, which dials in our place: so it is judged here where to.
func (g *dialGuard) proxyFor(req *http.Request) (*url.URL, error) {
	u, err := g.proxyFromEnv(req)
	if u == nil || err != nil {
		return u, err
	}
	if err := g.checkHost(req.Context(), req.URL.Hostname()); err != nil {
		return nil, err
	}
	// as net/http has it
	port := cmp.Or(u.Port(), map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme], "80")
	g.mu.Lock()
	defer g.mu.Unlock()
	g.proxies[net.JoinHostPort(u.Hostname(), port)] = true
	return u, nil
}

// lookupTimeout is how long a name is looked up that a proxy is told: behind some proxies there is nobody to ask.
const lookupTimeout = 2 * time.Second

// checkHost judges the addresses of a host, as far as they are known here.
func (g *dialGuard) checkHost(ctx context.Context, host string) error {
	addrs := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, a)
	} else {
		brief, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		addrs, _ = g.lookupIPs(brief, "ip", host) // the proxy may know more
	}
	for _, a := range addrs {
		if err := g.controlFor(host)(ctx, "tcp", netip.AddrPortFrom(a, 0).String(), nil); err != nil {
			return g.asRefused(err)
		}
	}
	return nil
}

// dial dials a host.
func (g *dialGuard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	conn, err := g.newDialer(host, address).DialContext(ctx, network, address)
	if err != nil {
		return nil, g.asRefused(err)
	}
	return conn, nil
}

// newDialer looks a name up once, and judges each address of it in the instant before it is called.
func (g *dialGuard) newDialer(host, address string) *net.Dialer {
	dialer := &net.Dialer{Timeout: RequestTimeout / 2, ControlContext: g.controlFor(host), Resolver: g.resolver}
	if g.isProxy(address) {
		dialer.ControlContext = nil
	}
	return dialer
}

func (g *dialGuard) isProxy(address string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.proxies[address]
}

// controlFor gives what judges the addresses of a host. What the person named is theirs to name.
func (g *dialGuard) controlFor(host string) func(context.Context, string, string, syscall.RawConn) error {
	switch a, err := netip.ParseAddr(host); {
	case g.allowsLocal && err == nil && a.IsUnspecified(): // people write so of what is on this machine
		return func(context.Context, string, string, syscall.RawConn) error { return nil }
	case g.allowsLocal || g.namedHosts[strings.ToLower(host)]:
		return controlAllowingLocal
	}
	return g.controlPublicOnly
}

// controlAllowingLocal lets everything be dialled that is somebody's, but not where machines keep their secrets.
func controlAllowingLocal(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: it is none", ErrNotPublic)
	}
	if isForbidden(at.Addr()) {
		return ErrNotPublic
	}
	return nil
}

func (g *dialGuard) controlPublicOnly(ctx context.Context, network, address string, c syscall.RawConn) error {
	if err := controlAllowingLocal(ctx, network, address, c); err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(address)
	if err == nil && (isPublic(at.Addr()) || g.isServerLocal(ctx)) {
		return nil
	}
	return ErrNotPublic
}

// ErrNotPublic is wrapped by the error for an address that is not called.
var ErrNotPublic = errors.New("an address that is not public is not called on the word of a server that is")

// isServerLocal says whether the server itself is on an address that is not public. It is found out once. A name that
// does not say so is not believed for what it leads to now, since that may be another address than the one the server
// was called at: the server has to prove there that the name is its own.
func (g *dialGuard) isServerLocal(ctx context.Context) bool {
	g.mu.Lock()
	known := g.serverIsLocal
	g.mu.Unlock()
	if known != nil {
		return *known
	}
	local := strings.EqualFold(g.host, "localhost")
	if !local && g.host != "" {
		addrs, err := g.lookupIPs(ctx, "ip", g.host)
		if err != nil || len(addrs) == 0 {
			return false
		}
		local = !slices.ContainsFunc(addrs, isPublic)
		if local && !isLocalName(g.host) && !slices.ContainsFunc(addrs,
			func(a netip.Addr) bool { return !isForbidden(a) && g.verifyHost(ctx, a) }) {
			return false // it may be able to later
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.serverIsLocal = &local
	return local
}

// verifyTimeout is how long a server may take to prove that it is where its name leads.
const verifyTimeout = 5 * time.Second

// verifyHostByTLS says whether a server at an address has a certificate for the guard's host.
func (g *dialGuard) verifyHostByTLS(ctx context.Context, a netip.Addr) bool {
	if g.port == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	dialer := &tls.Dialer{Config: &tls.Config{ServerName: g.host, RootCAs: g.roots}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), g.port))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// specialPrefixes gives the ranges that netip has no word for (the registries of special-purpose addresses, 2025), and
// those in which an address of another kind hides that is not to be reached this way.
func specialPrefixes() []netip.Prefix {
	return parsePrefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
		"198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4", "168.63.129.16/32", "::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64",
		"100:0:0:1::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10")
}

// forbiddenPrefixes gives what nobody is to name: what is no one's address, and where clouds answer their machines'
// questions.
func forbiddenPrefixes() []netip.Prefix {
	return append(parsePrefixes("0.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4", "::/128", "fe80::/10", "ff00::/8"),
		metadataPrefixes()...)
}

// metadataPrefixes gives where clouds answer their machines' questions: most of them, then Alibaba, Azure and Oracle;
// and by addresses of the new kind Amazon, Google, Oracle and Scaleway.
func metadataPrefixes() []netip.Prefix {
	return parsePrefixes("169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
		"fd00:ec2::/32", "fd20:ce::/64", "fd00:c1::a9fe:0/112", "fd00:42::42/128")
}

func parsePrefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func isPublic(a netip.Addr) bool {
	a = unmapAddr(a)
	return a.IsGlobalUnicast() && !a.IsPrivate() && !a.IsLoopback() && !a.IsLinkLocalUnicast() &&
		!isInPrefixes(a, specialPrefixes()) && !isForbidden(a)
}

func isForbidden(a netip.Addr) bool {
	for _, b := range translatedIPv4s(a) {
		if isInPrefixes(b, metadataPrefixes()) {
			return true
		}
	}
	return isInPrefixes(unmapAddr(a), forbiddenPrefixes()) || isInPrefixes(tunnelledIPv4(a), forbiddenPrefixes())
}

func isInPrefixes(a netip.Addr, all []netip.Prefix) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(a) })
}

// unmapAddr is an address without its zone, and that of the old kind where it is one in the form of the new one:
// mapped, or translated by the well-known prefix of RFC 6052, by which networks of the new kind reach every old
// address.
func unmapAddr(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if known := netip.MustParsePrefix("64:ff9b::/96"); known.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// tunnelledIPv4 is the address of the old kind in one of the new kind that is tunnelled (RFC 3056), or compatible (RFC
// 4291); else none.
func tunnelledIPv4(a netip.Addr) netip.Addr {
	a = unmapAddr(a)
	switch b := a.As16(); {
	case a.Is4():
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case netip.MustParsePrefix("::/96").Contains(a) && a != netip.IPv6Loopback():
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return netip.Addr{}
}

// translatedIPv4s are the addresses of the old kind to which one of the new kind may lead where a network translates
// or tunnels it: by RFC 6052 within the prefix for networks' own translators (RFC 8215), whichever length theirs has,
// by RFC 7915, and by RFC 4380 the server and the client, whose address is inverted.
func translatedIPv4s(a netip.Addr) (all []netip.Addr) {
	b := a.As16()
	last := [4]byte(b[12:])
	add := func(b ...[4]byte) {
		for _, one := range b {
			all = append(all, netip.AddrFrom4(one))
		}
	}
	switch a = a.WithZone(""); {
	case netip.MustParsePrefix("64:ff9b:1::/48").Contains(a):
		add(last, [4]byte{b[6], b[7], b[9], b[10]}, [4]byte{b[7], b[9], b[10], b[11]}, [4]byte(b[9:13]))
	case netip.MustParsePrefix("::ffff:0:0:0/96").Contains(a):
		add(last)
	case netip.MustParsePrefix("2001::/32").Contains(a):
		add([4]byte(b[4:8]), [4]byte{^last[0], ^last[1], ^last[2], ^last[3]})
	}
	return all
}

// IsLoopback says whether a host is this machine by its name.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
