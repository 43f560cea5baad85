// Package safehttp sends HTTP requests to addresses that a server names, such as the URL of its metadata or of its
// authorization server. A server is not trusted to choose where Drawbridge connects.
//
// A public server cannot make such a request reach a private address, unless a person named the host. No request ever
// reaches the metadata services of clouds, which return machine credentials. Redirects of a client from [NewClient]
// stay within an origin, and each of its requests has a timeout.
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

// RequestTimeout is the maximum time for one request with its response.
const RequestTimeout = 20 * time.Second

const maxRedirects = 5

// NewClient returns a client for addresses that the server at address names, such as metadata or endpoints. It connects
// to a non-public address only if the server itself has one, or if a URL in named has the same host. Otherwise a remote
// server could make Drawbridge call a local server. Redirects stay within an origin. Each request ends after at most
// RequestTimeout.
func NewClient(address string, named ...string) *http.Client {
	g := newGuard(address, named...)
	transport := &http.Transport{
		Proxy: g.proxyFor, DialContext: g.dial, TLSHandshakeTimeout: RequestTimeout / 2, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 2, IdleConnTimeout: 10 * time.Second, MaxResponseHeaderBytes: 256 << 10,
		DisableKeepAlives: true,
	}
	return &http.Client{Transport: transport, Timeout: RequestTimeout, CheckRedirect: checkRedirect}
}

// NewPageClient returns a client for addresses that a model or a page chose. It connects to public addresses. A person
// named the hosts; for them it also connects to private addresses. Redirects may lead to other origins, but not from
// https to http. Each redirect is checked like the first address. The caller must limit the time of a request by its
// context.
func NewPageClient(hosts ...string) *http.Client {
	g := newGuard("")
	g.serverIsLocal = new(bool)
	for _, host := range hosts {
		g.namedHosts[strings.ToLower(host)] = true
	}
	transport := &http.Transport{
		Proxy: g.proxyFor, DialContext: g.dial, TLSHandshakeTimeout: RequestTimeout / 2, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: 256 << 10, DisableKeepAlives: true,
	}
	return &http.Client{Transport: transport, CheckRedirect: checkPageRedirect}
}

func checkPageRedirect(req *http.Request, via []*http.Request) error {
	switch err := CheckPageURL(req.URL.String()); {
	case len(via) > maxRedirects:
		return errors.New("too many redirects")
	case err != nil:
		return fmt.Errorf("redirect to a URL that %w", err)
	case via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https":
		return errors.New("redirect from https to http refused")
	}
	return nil
}

// ProxyAndDialer returns the proxy function and the dialler for requests to the server at address itself. own reports
// whether the person configured the server for themselves. If own is true or the host is visibly local, any address is
// allowed except cloud metadata services and unassigned addresses. Otherwise the address must be public: the person
// approved a name, and the name's owner may change its address at any time. Both functions return a *RefusedError for a
// refused address.
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

// isLocalName reports whether a host is an IP address, or a name that people recognise as a name of this machine or
// network. It returns false for other notations that resolvers read as an address and people do not (2130706433,
// 0x7f.1, full-width digits).
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

// A RefusedError is the error for a call of a server whose name resolves to an address that is not allowed.
type RefusedError struct{ why string }

func (e *RefusedError) Error() string { return e.why }

// FaultCode returns PolicyBlocked, because a retry cannot succeed.
func (e *RefusedError) FaultCode() drawbridge.FaultCode { return drawbridge.PolicyBlocked }

// asRefused converts the error of a refused address to a RefusedError, if the guard is for calls of the server itself.
// Otherwise it returns err.
func (g *dialGuard) asRefused(err error) error {
	switch {
	case !g.callsServerItself || !errors.Is(err, ErrNotPublic):
		return err
	case g.allowsLocal:
		return &RefusedError{"refused: the address is unassigned, or one where machines get their credentials"}
	}
	return &RefusedError{"its name resolves to an address that is not public, and the approval did not show one " +
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

// A dialGuard decides to which addresses Drawbridge may connect.
type dialGuard struct {
	// host is the server's host. port is its TLS port, or empty if it does not use TLS. roots are the trusted roots for
	// its certificate; nil means the system's roots.
	host, port string
	roots      *x509.CertPool
	// verifyHost reports whether the server at an address has a certificate for the host.
	verifyHost func(context.Context, netip.Addr) bool
	// namedHosts are the hosts that a person named. lookupIPs resolves names, and proxyFromEnv returns the proxy of a
	// request.
	namedHosts   map[string]bool
	lookupIPs    func(ctx context.Context, network, host string) ([]netip.Addr, error)
	proxyFromEnv func(*http.Request) (*url.URL, error)
	// resolver resolves the names in dialled addresses; nil means the system's resolver.
	resolver *net.Resolver
	// callsServerItself is true if the server itself is called, and false if an address that it names is called.
	// allowsLocal is true if the server may have a local address.
	callsServerItself, allowsLocal bool

	mu      sync.Mutex
	proxies map[string]bool // host and port of proxies of the environment; not checked, since the person chose them
	// serverIsLocal reports whether the server itself has a non-public address; nil means that this was not determined
	// yet.
	serverIsLocal *bool
}

// proxyFor returns the proxy of a request, or nil for no proxy. The guard cannot check the connection from the proxy to
// the target, so proxyFor checks the target's addresses.
func (g *dialGuard) proxyFor(req *http.Request) (*url.URL, error) {
	u, err := g.proxyFromEnv(req)
	if u == nil || err != nil {
		return u, err
	}
	if err := g.checkHost(req.Context(), req.URL.Hostname()); err != nil {
		return nil, err
	}
	// These default ports are those of net/http.
	port := cmp.Or(u.Port(), map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme], "80")
	g.mu.Lock()
	defer g.mu.Unlock()
	g.proxies[net.JoinHostPort(u.Hostname(), port)] = true
	return u, nil
}

// lookupTimeout is the maximum time to resolve a name to which a proxy will connect. Some networks with a proxy have no
// resolver, so the lookup may never end.
const lookupTimeout = 2 * time.Second

// checkHost returns an error if an address of the host is refused. If the name cannot be resolved here, checkHost
// returns nil.
func (g *dialGuard) checkHost(ctx context.Context, host string) error {
	addrs := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, a)
	} else {
		brief, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		addrs, _ = g.lookupIPs(brief, "ip", host) // if the lookup fails, only the proxy knows the name
	}
	for _, a := range addrs {
		if err := g.controlFor(host)(ctx, "tcp", netip.AddrPortFrom(a, 0).String(), nil); err != nil {
			return g.asRefused(err)
		}
	}
	return nil
}

// dial connects to an address, unless the guard refuses it.
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

// newDialer returns a dialler that resolves a name once, and checks each address immediately before it connects. If
// address is that of a proxy, the dialler does not check it.
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

// controlFor returns the function that checks an address of a host before the connection. Hosts that the person named
// may have local addresses.
func (g *dialGuard) controlFor(host string) func(context.Context, string, string, syscall.RawConn) error {
	switch a, err := netip.ParseAddr(host); {
	case g.allowsLocal && err == nil && a.IsUnspecified(): // 0.0.0.0 or ::, which often means this machine
		return func(context.Context, string, string, syscall.RawConn) error { return nil }
	case g.allowsLocal || g.namedHosts[strings.ToLower(host)]:
		return controlAllowingLocal
	}
	return g.controlPublicOnly
}

// controlAllowingLocal returns an error for invalid addresses, unassigned addresses and cloud metadata services.
func controlAllowingLocal(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: it is not an IP address", ErrNotPublic)
	}
	if isForbidden(at.Addr()) {
		return ErrForbidden
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

// ErrNotPublic is wrapped by the errors for refused addresses.
var ErrNotPublic = errors.New("a public server named an address that is not public")

// ErrForbidden is wrapped by the errors for addresses that no person can allow. It wraps ErrNotPublic.
var ErrForbidden = fmt.Errorf("%w: it is unassigned, or one where machines get their credentials", ErrNotPublic)

// isServerLocal reports whether the server itself has a non-public address, and caches the result. A name may resolve
// to a private address now, although it resolved to a public address when the server was called. So a server whose name
// is not visibly local must also prove with a certificate that it owns the name.
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
			return false // a later attempt may succeed
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.serverIsLocal = &local
	return local
}

// verifyTimeout is the maximum time to check the server's certificate.
const verifyTimeout = 5 * time.Second

// verifyHostByTLS reports whether the server at an address has a certificate for the guard's host.
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

// specialPrefixes returns the special-purpose address ranges for which netip has no method, from the IANA registries of
// 2025. Some ranges embed an IPv4 address. They are refused, because that IPv4 address may be private.
func specialPrefixes() []netip.Prefix {
	return parsePrefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
		"198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4", "168.63.129.16/32", "::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64",
		"100:0:0:1::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10")
}

// forbiddenPrefixes returns the address ranges that not even a person may allow: unassigned addresses and the metadata
// services of clouds.
func forbiddenPrefixes() []netip.Prefix {
	return append(parsePrefixes("0.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4", "::/128", "fe80::/10", "ff00::/8"),
		metadataPrefixes()...)
}

// metadataPrefixes returns the addresses of the metadata services of clouds. For IPv4 these are the common address,
// then Alibaba, Azure and Oracle. For IPv6 these are Amazon, Google, Oracle and Scaleway.
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

// unmapAddr returns an address without its zone. For an IPv6 address that is IPv4-mapped, it returns the IPv4 address.
// It does the same for the well-known prefix of RFC 6052, by which IPv6 networks reach every IPv4 address.
func unmapAddr(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if known := netip.MustParsePrefix("64:ff9b::/96"); known.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// tunnelledIPv4 returns the IPv4 address in an IPv6 address that is tunnelled (RFC 3056) or IPv4-compatible (RFC 4291).
// For any other address it returns the zero Addr.
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

// translatedIPv4s returns the IPv4 addresses that an IPv6 address may lead to if a network translates or tunnels it.
// It covers local translators (RFC 6052 within the prefix of RFC 8215, for every prefix length), RFC 7915, and Teredo
// (RFC 4380), whose addresses contain the server and the inverted client address.
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

// IsLoopback reports whether a host is localhost or a loopback address.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
