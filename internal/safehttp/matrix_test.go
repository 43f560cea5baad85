package safehttp

import (
	"context"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// errNoCall ends every call of these tests before it leaves the machine.
var errNoCall = errors.New("the test calls nobody")

// A world is names and what they lead to: each asked for in turn gives the next answer, and the last one from then on.
type world struct {
	mu    sync.Mutex
	names map[string][][]string
	asked map[string]int
}

func (w *world) answer(name string, six bool) (addrs []netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.names[name]
	if len(all) == 0 {
		return nil
	}
	n := w.asked[name] / 2 // both kinds are asked for
	w.asked[name]++
	for _, text := range all[min(n, len(all)-1)] {
		if a := netip.MustParseAddr(text); a.Is6() == six {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// resolver speaks DNS to the net package, as far as that asks.
func (w *world) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() { // ends with the connection
			defer far.Close()
			for {
				var size [2]byte
				if _, err := io.ReadFull(far, size[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(far, query); err != nil {
					return
				}
				reply := w.reply(query)
				if _, err := far.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))),
					reply...)); err != nil {
					return
				}
			}
		}()
		return near, nil
	}}
}

// reply answers one question: a name is there with the addresses it has, or not at all.
func (w *world) reply(query []byte) []byte {
	var labels []string
	at := 12
	for query[at] != 0 {
		labels = append(labels, string(query[at+1:at+1+int(query[at])]))
		at += 1 + int(query[at])
	}
	kind := binary.BigEndian.Uint16(query[at+1:])
	addrs := w.answer(strings.Join(labels, "."), kind == 28)
	reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1}, binary.BigEndian.AppendUint16(nil,
		uint16(len(addrs)))...)
	reply = append(reply, 0, 0, 0, 0)
	reply = append(reply, query[12:at+5]...)
	if w.names[strings.Join(labels, ".")] == nil {
		reply[3] = 0x83 // no such name
	}
	for _, a := range addrs {
		reply = append(reply, 0xc0, 12)
		reply = binary.BigEndian.AppendUint16(reply, kind)
		reply = append(reply, 0, 1, 0, 0, 0, 0)
		reply = binary.BigEndian.AppendUint16(reply, uint16(a.BitLen()/8))
		reply = append(reply, a.AsSlice()...)
	}
	return reply
}

// called says which addresses a guard would call for a host, and which it was led to and does not.
func called(t *testing.T, g *dialGuard, host string) (calls, refused []string) {
	t.Helper()
	address := net.JoinHostPort(host, "443")
	d := g.newDialer(host, address)
	judge := d.ControlContext
	var mu sync.Mutex
	d.ControlContext = func(ctx context.Context, network, at string, c syscall.RawConn) error {
		err := judge(ctx, network, at, c)
		mu.Lock()
		defer mu.Unlock()
		if at, _, _ = net.SplitHostPort(at); err == nil {
			calls = append(calls, at)
		} else {
			refused = append(refused, at)
		}
		return errNoCall
	}
	if conn, err := d.DialContext(t.Context(), "tcp", address); err == nil {
		_ = conn.Close()
		t.Errorf("%s was called", host)
	}
	return calls, refused
}

// The ways there are to call somebody: on the word of a server far away, of one near; as the server of a project's
// row, and of one's own.
func guards(w *world) map[string]*dialGuard {
	all := map[string]*dialGuard{
		"far": newGuard("https://8.8.8.8/mcp"), "near": newGuard("http://127.0.0.1/mcp"),
		"project": newServerGuard("https://mcp.example/", false), "own": newServerGuard("https://mcp.example/", true),
	}
	for _, g := range all {
		g.lookupIPs = func(_ context.Context, _, host string) ([]netip.Addr, error) {
			if a, err := netip.ParseAddr(host); err == nil {
				return []netip.Addr{a}, nil
			}
			addrs := append(w.answer(host, false), w.answer(host, true)...)
			if len(addrs) == 0 {
				return nil, errors.New("no such host")
			}
			return addrs, nil
		}
		g.resolver = w.resolver()
	}
	return all
}

func addrs(all ...string) [][]string { return [][]string{all} }

// matrixNames are the names that the resolver of the matrix knows, with the addresses of each answer in turn.
var matrixNames = map[string][][]string{
	"127.1": addrs("127.0.0.1"), "2130706433": addrs("127.0.0.1"), "0177.0.0.1": addrs("127.0.0.1"),
	"0x7f.1": addrs("127.0.0.1"), "127.000.000.001": addrs("127.0.0.1"),
	"2852039166": addrs("169.254.169.254"), "metadata.google.internal": addrs("169.254.169.254"),
	"metadata": addrs("169.254.169.254"), "instance-data.ec2.internal": addrs("fd00:ec2::254"),
	"sub.localhost.example": addrs("127.0.0.1"), "xn--nxasmq6b.example": addrs("10.0.0.1"),
	"mixed.example": addrs("8.8.8.8",
		"10.0.0.1", "::1"), "second.example": addrs("10.0.0.1", "127.0.0.1"),
	"six.example": addrs("8.8.8.8", "fc00::1"), "flip.example": {{"8.8.8.8"}, {"127.0.0.1"}, {"127.0.0.1"}},
	"late.example": {nil, {"10.0.0.1"}},
	"many.example": addrs(repeat("10.0.0.1", 60)...), "db.internal": addrs("10.0.0.1"),
	"printer.local": addrs("192.168.0.9"),
}

// TestSSMatrix1To14 is rows SS-1 to SS-14 of the matrix of addresses: what a host is called, and who may lead there.
// Whoever may not calls nobody.
func TestSSMatrix1To14(t *testing.T) {
	const (
		nobody = ""
		mine   = "near own"
	)
	for row, hosts := range map[string]map[string]string{
		"SS-1": {"127.0.0.1": mine, "127.1": nobody, "10.1.2.3": mine, "172.16.0.1": mine, "192.168.1.1": mine,
			"0.0.0.0": "own", "::1": mine, "::": "own"},
		"SS-2": {"169.254.169.254": nobody, "169.254.170.2": nobody, "fd00:ec2::254": nobody, "fd20:ce::254": nobody,
			"fd00:c1::a9fe:a9fe": nobody, "fd00:42::42": nobody, "fd00:42::43": mine, "100.100.100.200": nobody,
			"168.63.129.16": nobody, "metadata.google.internal": nobody, "metadata": nobody,
			"instance-data.ec2.internal": nobody},
		"SS-3": {"2130706433": nobody, "0177.0.0.1": nobody, "0x7f.1": mine, "127.000.000.001": nobody,
			"2852039166": nobody},
		"SS-4": {"100.64.0.1": mine, "192.0.0.1": mine, "192.0.2.1": mine, "198.18.0.1": mine, "198.51.100.1": mine,
			"203.0.113.1": mine, "192.88.99.1": mine, "224.0.0.1": nobody, "240.0.0.1": nobody,
			"255.255.255.255": nobody},
		"SS-5": {"::ffff:127.0.0.1": mine, "::ffff:a9fe:a9fe": nobody, "::127.0.0.1": mine, "::a9fe:a9fe": nobody,
			"::ffff:0:7f00:1": mine, "::ffff:0:a9fe:a9fe": nobody, "::ffff:0:808:808": mine},
		"SS-6": {"fc00::1": mine, "fd12::1": mine, "fe80::1": nobody, "ff02::1": nobody},
		"SS-7": {"2001:db8::1": mine, "3fff::1": mine, "100::1": mine, "2001:20::1": mine, "2001:2::1": mine},
		"SS-8": {"2001:0:7f00:1::": mine, "2001:0:808:808::5601:5601": nobody, "2001:0:a9fe:a9fe::f7f7:f7f7": nobody,
			"2001:0:808:808::f5ff:fffe": mine},
		"SS-9":  {"2002:7f00:1::": mine, "2002:a9fe:a9fe::": nobody},
		"SS-10": {"64:ff9b::7f00:1": mine, "64:ff9b::a9fe:a9fe": nobody},
		"SS-11": {"64:ff9b:1::1": mine, "64:ff9b:1::7f00:1": mine, "64:ff9b:1::a9fe:a9fe": nobody,
			"64:ff9b:1:2:3:4:6464:64c8": nobody,
			"64:ff9b:1:a9fe:a9:fe00::":  nobody, "64:ff9b:1:a9:fe:a9fe::": nobody, "64:ff9b:1::a9:fea9:fe00:0": nobody},
		"SS-12": {"fec0::1": mine},
		"SS-13": {"sub.localhost.example": mine, "xn--nxasmq6b.example": mine, "db.internal": mine,
			"printer.local": mine, "nobody.example": nobody},
		"SS-14": {"second.example": mine, "many.example": mine},
	} {
		for host, who := range hosts {
			if !strings.ContainsAny(host, "abcdefghijklmnopqrstuvwxyz") || strings.Contains(host, ":") {
				if a, err := netip.ParseAddr(host); err == nil && a.Is4In6() {
					host = a.String()
				}
			}
			for kind, g := range guards(&world{names: matrixNames, asked: map[string]int{}}) {
				may := strings.Contains(who, kind)
				if kind == "own" && who == "own" { // what a row says of this machine, it says of its own host
					g = newServerGuard((&url.URL{Scheme: "http", Host: net.JoinHostPort(host, "80")}).String(), true)
				}
				calls, refused := called(t, g, host)
				if (len(calls) > 0) != may || len(calls) > 0 && len(refused) > 0 {
					t.Errorf("%s %s for %s: would call %q, refuses %q", row, host, kind, calls, refused)
				}
			}
		}
	}
}

// TestSS14AServerIsNearWhereItProvesIt: a server far away that has its own name lead near, once we ask, is not
// believed; one that has a certificate for its name there is.
func TestSS14AServerIsNearWhereItProvesIt(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS() // its certificate is for example.com
	defer srv.Close()
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	for host, near := range map[string]bool{"example.com": true, "evil.example": false} {
		for scheme, speaks := range map[string]bool{"https": true, "http": false} {
			g := newGuard(scheme + "://" + net.JoinHostPort(host, u.Port()) + "/mcp")
			g.roots = roots
			g.lookupIPs = func(context.Context, string, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr(u.Hostname())}, nil
			}
			if got := g.isServerLocal(t.Context()); got != (near && speaks) {
				t.Errorf("%s://%s is near: %v", scheme, host, got)
			}
		}
	}
}

// TestSS15Redirects is row SS-15: no redirect leads anywhere else, in whatever form.
func TestSS15Redirects(t *testing.T) {
	var location string
	srv := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			return
		}
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	})
	for _, location = range []string{
		"http://169.254.169.254/", "http://127.0.0.1:1/", "//169.254.169.254/", "https://8.8.8.8/",
		"http://me@169.254.169.254/", "file:///etc/passwd", "gopher://127.0.0.1/",
		"http://[::ffff:a9fe:a9fe]/", "\\\\evil",
		strings.Replace(srv.URL, "http", "https", 1), strings.Replace(srv.URL, "127.0.0.1", "localhost", 1),
	} {
		resp, err := NewClient(srv.URL).Get(srv.URL)
		if err == nil {
			_ = resp.Body.Close()
			if resp.Request.URL.Host != strings.TrimPrefix(srv.URL, "http://") {
				t.Errorf("%s was followed", location)
			}
		}
	}
}

// TestSS16Syntax and the two after it are rows SS-16, SS-17 and SS-19: what is no proper address is refused before it
// is looked at.
func TestSS16Syntax(t *testing.T) {
	for _, address := range []string{
		"http://good@127.0.0.1/", "https://good.example@127.0.0.1/", "https://h\\@127.0.0.1", "https://h\t.example",
		"https://h\n.example", "https://", "https:/x", "https:x", "//h", "https://h:0/", "https://h:22/",
		"https://h:25/", "https://h:65536/",
		"https://h:-1", "https://[::1", "https://[fe80::1%25eth0]:99999/", "HTTPS://h:22", "https://h^",
		"https://ｈ.example/", "",
	} {
		if CheckURL(address) == nil {
			t.Errorf("%q is fit to be called", address)
		}
	}
	for _, address := range []string{"https://h.example/", "HTTPS://h.example:8443/x?y=z#f", "http://127.0.0.1:80/",
		"http://localhost:1234"} {
		if err := CheckURL(address); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestSS17Schemes(t *testing.T) {
	for _, scheme := range []string{"file", "gopher", "dict", "ftp", "data", "javascript", "unix", "ws", "wss", "http",
		"jar", "view-source"} {
		for _, rest := range []string{"://h.example/x", ":h.example", ":///etc/passwd"} {
			if CheckURL(scheme+rest) == nil {
				t.Errorf("%s%s is fit to be called", scheme, rest)
			}
		}
	}
}

// TestSS18Proxies is row SS-18: what a proxy would be told is judged before it is told, of a server itself too.
func TestSS18Proxies(t *testing.T) {
	w := &world{names: map[string][][]string{"in.example": {{"10.0.0.1"}}, "out.example": {{"8.8.8.8"}},
		"meta.example": {{"169.254.169.254"}}}, asked: map[string]int{}}
	at := &url.URL{Scheme: "http", Host: "127.0.0.1:3128"}
	for host, who := range map[string]string{"in.example": "near own", "out.example": "far near project own",
		"meta.example": ""} {
		for kind, g := range guards(w) {
			g.proxyFromEnv = func(*http.Request) (*url.URL, error) { return at, nil }
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.proxyFor(req); (err == nil) != strings.Contains(who, kind) {
				t.Errorf("%s for %s by a proxy: %v", host, kind, err)
			}
		}
	}
}

// TestSS20WhatIsShownIsLifted is row SS-20: a project's row reaches what its approval showed to be near, never where
// machines are told their secrets, and nothing by a name that says nothing.
func TestSS20WhatIsShownIsLifted(t *testing.T) {
	for address, near := range map[string]bool{
		"http://127.0.0.1:1/mcp": true, "http://localhost/mcp": true, "http://LOCALHOST.:80": true,
		"http://app.localhost": true, "http://[::1]:80": true, "http://10.0.0.1": true, "http://mcp:8080": true,
		"http://db.internal": true, "http://nas.local": true, "http://0.0.0.0:80": true,
		"https://mcp.example": false, "http://2130706433": false, "http://0x7f.1": false, "http://127.1": false,
		"http://ｌocalhost": false, "http://localhost.example": false, "": false,
	} {
		g := newServerGuard(address, false)
		if g.allowsLocal != near {
			t.Errorf("%s says that it is near: %v", address, g.allowsLocal)
		}
		for at, may := range map[string]bool{"10.0.0.1:80": near, "169.254.169.254:80": false, "8.8.8.8:80": true} {
			err := g.controlFor("x.example")(t.Context(), "tcp", at, nil)
			if (err == nil) != may {
				t.Errorf("%s at %s: %v", address, at, err)
			}
			if err = g.asRefused(err); err != nil {
				if _, ok := errors.AsType[*RefusedError](err); !ok {
					t.Errorf("%s at %s is refused without a code: %v", address, at, err)
				}
			}
		}
	}
}

func repeat(s string, n int) (all []string) {
	for range n {
		all = append(all, s)
	}
	return all
}

func TestSSMatrix14JudgesEachAddress(t *testing.T) {
	// SS-14: each address is judged
	for host, want := range map[string]string{"mixed.example": "8.8.8.8", "six.example": "8.8.8.8"} {
		for _, kind := range []string{"far", "project"} {
			calls, refused := called(t, guards(&world{names: matrixNames, asked: map[string]int{}})[kind], host)
			if diff := cmp.Diff([]string{want}, calls); diff != "" || len(refused) == 0 {
				t.Errorf("SS-14 %s for %s: %s refuses %q", host, kind, diff, refused)
			}
		}
	}
	// SS-14: what is judged is what is called, at each call anew
	for _, host := range []string{"flip.example", "late.example"} {
		g := guards(&world{names: matrixNames, asked: map[string]int{}})["far"]
		for range 3 {
			if calls, _ := called(t, g, host); len(calls) > 0 && calls[0] != "8.8.8.8" {
				t.Errorf("SS-14 %s: calls %q", host, calls)
			}
		}
	}
}
