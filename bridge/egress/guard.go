// Package egress calls where a server's word leads: its metadata, its authorization server. Whoever says where is not believed
// that we may go there.
//
// It promises that such a call reaches nothing that is near us on the word of a server that is far, nor ever the places where
// machines are told their secrets; that it crosses from one origin to another by no redirect, and that it ends.
package egress

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

// Time is how long one exchange may take.
const Time = 20 * time.Second

const maxRedirects = 5

// Client gives a client for what a server at that address names: metadata, endpoints. It reaches addresses that are not
// public only where the server itself is on one, or where they are those of the hosts that its row names: else a server far
// away could have us call what is near. Redirects stay within an origin; everything is over in some seconds.
func Client(address string, named ...string) *http.Client {
	g := guardOf(address, named...)
	transport := &http.Transport{
		Proxy: g.proxy, DialContext: g.dial, TLSHandshakeTimeout: Time / 2, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 2, IdleConnTimeout: 10 * time.Second, MaxResponseHeaderBytes: 256 << 10, DisableKeepAlives: true,
	}
	return &http.Client{Transport: transport, Timeout: Time, CheckRedirect: withinOrigin}
}

// Ways gives how the server at that address itself is reached: the proxy of a request, and a dialler. Where its row is the
// person's own, or its host says that it is near, that may be anywhere but where machines are told their secrets. Else it is
// public: whoever approved the row was shown a name, and what it leads to may be another's choice, at each call anew. What
// they refuse is a *RefusedError.
func Ways(address string, own bool) (proxy func(*http.Request) (*url.URL, error), dial func(context.Context, string, string) (net.Conn, error)) {
	g := wayTo(address, own)
	return g.proxy, g.dial
}

func wayTo(address string, own bool) *guard {
	g, far := guardOf(address), false
	g.direct, g.anywhere, g.local = true, own || saysNear(g.host), &far
	return g
}

// saysNear says whether a host is on this machine or network by its name, or an address: one who was shown it knows. What
// resolvers take for an address and people do not (2130706433, 0x7f.1, letters of another width) says nothing.
func saysNear(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	last := host[strings.LastIndex(host, ".")+1:]
	if last == "" || last[0] >= '0' && last[0] <= '9' || strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
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

// refuse says of a server itself why it is not called; of what one names it was said.
func (g *guard) refuse(err error) error {
	switch {
	case !g.direct || !errors.Is(err, ErrNotPublic):
		return err
	case g.anywhere:
		return &RefusedError{"no server is called at an address where machines are told their secrets, or that is nobody's"}
	}
	return &RefusedError{"its name leads to an address that is not public, and the approval showed no such address " +
		"(a row of your own may lead there: drawbridge mcp add -s user)"}
}

func guardOf(address string, named ...string) *guard {
	g := &guard{proxies: map[string]bool{}, named: map[string]bool{}, lookup: net.DefaultResolver.LookupNetIP, environment: http.ProxyFromEnvironment}
	if u, err := url.Parse(address); err == nil {
		g.host = u.Hostname()
		if u.Scheme == "https" {
			g.port = cmp.Or(u.Port(), "443")
		}
	}
	g.proves = g.provesByTLS
	for _, address := range named {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			g.named[strings.ToLower(u.Hostname())] = true
		}
	}
	return g
}

func withinOrigin(req *http.Request, via []*http.Request) error {
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

// A guard judges the addresses that are dialled.
type guard struct {
	// host is that of the server, port the one at which it speaks TLS; empty where it does not. Roots are those that its
	// certificate must lead to; nil is the system's.
	host, port string
	roots      *x509.CertPool
	// proves says whether a server at an address is the one of that host.
	proves func(context.Context, netip.Addr) bool
	// named are the hosts that the row names, lookup resolves names, environment gives the proxy of a request.
	named       map[string]bool
	lookup      func(ctx context.Context, network, host string) ([]netip.Addr, error)
	environment func(*http.Request) (*url.URL, error)
	// resolver is that of what is dialled; nil is the system's.
	resolver *net.Resolver
	// direct says that it is the server itself that is called, and not where its word leads; anywhere that it may be near.
	direct, anywhere bool

	mu      sync.Mutex
	proxies map[string]bool // hosts, with their ports, that the environment names: they are the person's own
	local   *bool           // whether the server itself is on an address that is not public; nil is not found out yet
}

// proxy gives the proxy of a request, which dials in our place: so it is judged here where to.
func (g *guard) proxy(req *http.Request) (*url.URL, error) {
	u, err := g.environment(req)
	if u == nil || err != nil {
		return u, err
	}
	if err := g.judge(req.Context(), req.URL.Hostname()); err != nil {
		return nil, err
	}
	port := cmp.Or(u.Port(), map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme], "80") // as net/http has it
	g.mu.Lock()
	defer g.mu.Unlock()
	g.proxies[net.JoinHostPort(u.Hostname(), port)] = true
	return u, nil
}

// lookupTime is how long a name is looked up that a proxy is told: behind some proxies there is nobody to ask.
const lookupTime = 2 * time.Second

// judge judges the addresses of a host, as far as they are known here.
func (g *guard) judge(ctx context.Context, host string) error {
	addrs := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, a)
	} else {
		brief, cancel := context.WithTimeout(ctx, lookupTime)
		defer cancel()
		addrs, _ = g.lookup(brief, "ip", host) // the proxy may know more
	}
	for _, a := range addrs {
		if err := g.controlOf(host)(ctx, "tcp", netip.AddrPortFrom(a, 0).String(), nil); err != nil {
			return g.refuse(err)
		}
	}
	return nil
}

// dial dials a host.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	conn, err := g.dialer(host, address).DialContext(ctx, network, address)
	if err != nil {
		return nil, g.refuse(err)
	}
	return conn, nil
}

// dialer looks a name up once, and judges each address of it in the instant before it is called.
func (g *guard) dialer(host, address string) *net.Dialer {
	dialer := &net.Dialer{Timeout: Time / 2, ControlContext: g.controlOf(host), Resolver: g.resolver}
	if g.isProxy(address) {
		dialer.ControlContext = nil
	}
	return dialer
}

func (g *guard) isProxy(address string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.proxies[address]
}

// controlOf gives what judges the addresses of a host. What the person named is theirs to name.
func (g *guard) controlOf(host string) func(context.Context, string, string, syscall.RawConn) error {
	switch a, err := netip.ParseAddr(host); {
	case g.anywhere && err == nil && a.IsUnspecified(): // people write so of what is on this machine
		return func(context.Context, string, string, syscall.RawConn) error { return nil }
	case g.anywhere || g.named[strings.ToLower(host)]:
		return near
	}
	return g.control
}

// near lets everything be dialled that is somebody's, but not where machines keep their secrets.
func near(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: it is none", ErrNotPublic)
	}
	if isForbidden(at.Addr()) {
		return ErrNotPublic
	}
	return nil
}

func (g *guard) control(ctx context.Context, network, address string, c syscall.RawConn) error {
	if err := near(ctx, network, address, c); err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(address)
	if err == nil && (isPublic(at.Addr()) || g.isLocal(ctx)) {
		return nil
	}
	return ErrNotPublic
}

// ErrNotPublic is wrapped by the error for an address that is not called.
var ErrNotPublic = errors.New("an address that is not public is not called on the word of a server that is")

// isLocal says whether the server itself is on an address that is not public. It is found out once. A name that does not
// say so is not believed for what it leads to now, since that may be another address than the one the server was called at: the
// server has to prove there that the name is its own.
func (g *guard) isLocal(ctx context.Context) bool {
	g.mu.Lock()
	known := g.local
	g.mu.Unlock()
	if known != nil {
		return *known
	}
	local := strings.EqualFold(g.host, "localhost")
	if !local && g.host != "" {
		addrs, err := g.lookup(ctx, "ip", g.host)
		if err != nil || len(addrs) == 0 {
			return false
		}
		local = !slices.ContainsFunc(addrs, isPublic)
		if local && !saysNear(g.host) && !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return !isForbidden(a) && g.proves(ctx, a) }) {
			return false // it may be able to later
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.local = &local
	return local
}

// proofTime is how long a server may take to prove that it is where its name leads.
const proofTime = 5 * time.Second

// provesByTLS says whether a server at an address has a certificate for the guard's host.
func (g *guard) provesByTLS(ctx context.Context, a netip.Addr) bool {
	if g.port == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	dialer := &tls.Dialer{Config: &tls.Config{ServerName: g.host, RootCAs: g.roots}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), g.port))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// special gives the ranges that netip has no word for (the registries of special-purpose addresses, 2025), and those in which
// an address of another kind hides that is not to be reached this way.
func special() []netip.Prefix {
	return prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4", "168.63.129.16/32", "::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10")
}

// forbidden gives what nobody is to name: what is no one's address, and where clouds answer their machines' questions.
func forbidden() []netip.Prefix {
	return append(prefixes("0.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4", "::/128", "fe80::/10", "ff00::/8"), answering()...)
}

// answering gives where clouds answer their machines' questions: most of them, then Alibaba, Azure and Oracle; and by addresses
// of the new kind Amazon, Google, Oracle and Scaleway.
func answering() []netip.Prefix {
	return prefixes("169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
		"fd00:ec2::/32", "fd20:ce::/64", "fd00:c1::a9fe:0/112", "fd00:42::42/128")
}

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func isPublic(a netip.Addr) bool {
	a = bare(a)
	return a.IsGlobalUnicast() && !a.IsPrivate() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !within(a, special()) && !isForbidden(a)
}

func isForbidden(a netip.Addr) bool {
	for _, b := range translated(a) {
		if within(b, answering()) {
			return true
		}
	}
	return within(bare(a), forbidden()) || within(hidden(a), forbidden())
}

func within(a netip.Addr, all []netip.Prefix) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(a) })
}

// bare is an address without its zone, and that of the old kind where it is one in the form of the new one: mapped, or
// translated by the well-known prefix of RFC 6052, by which networks of the new kind reach every old address.
func bare(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if known := netip.MustParsePrefix("64:ff9b::/96"); known.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// hidden is the address of the old kind in one of the new kind that is tunnelled (RFC 3056), or compatible (RFC 4291); else
// none.
func hidden(a netip.Addr) netip.Addr {
	a = bare(a)
	switch b := a.As16(); {
	case a.Is4():
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case netip.MustParsePrefix("::/96").Contains(a) && a != netip.IPv6Loopback():
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return netip.Addr{}
}

// translated are the addresses of the old kind to which one of the new kind may lead where a network translates or tunnels it: by
// RFC 6052 within the prefix for networks' own translators (RFC 8215), whichever length theirs has, by RFC 7915, and by RFC 4380 the
// server and the client, whose address is inverted.
func translated(a netip.Addr) (all []netip.Addr) {
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
