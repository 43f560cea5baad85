package safehttp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// Addresses by what they are: the tables of special-purpose addresses, and the forms in which one hides in another.
var (
	publicAddresses = []string{
		"1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1",
		"169.253.1.1", "198.17.0.1", "198.20.0.1",
		"2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808",
	}
	nearAddresses = []string{
		"127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1",
		"100.127.255.255",
		"192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "::1",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "fc00::1", "fd12:3456::1", "fec0::1", "2001:db8::1",
		"3fff::1", "100::1",
		"2001:20::1", "2001:2::1", "2001::1", "2002:7f00:1::", "2002:a00:1::1", "2002:808:808::1", "64:ff9b::7f00:1",
		"64:ff9b::a00:1", "64:ff9b:1::1",
	}
	neverAddresses = []string{
		"169.254.169.254", "169.254.170.2", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "100.100.100.200",
		"168.63.129.16", "::ffff:169.254.169.254",
		"64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "0.0.0.0", "::", "224.0.0.1", "239.255.255.250", "255.255.255.255",
		"ff02::1", "240.0.0.1", "0.1.2.3",
		"::a9fe:a9fe", "192.0.0.192",
	}
)

// TestOA7PrivateAddresses is row OA-7's private addresses, with the forms of the SSRF matrix: what is dialled is
// judged, whatever it was called. A server on this machine or network may name what is near it; nobody may name where
// machines keep their secrets.
func TestOA7PrivateAddresses(t *testing.T) {
	far, near := newGuard("https://8.8.8.8/mcp"), newGuard("http://127.0.0.1/mcp")
	for list, verdicts := range map[*[]string][2]bool{&publicAddresses: {true, true}, &nearAddresses: {false, true},
		&neverAddresses: {false, false}} {
		for _, text := range *list {
			at := netip.AddrPortFrom(netip.MustParseAddr(text), 443).String()
			for i, g := range []*dialGuard{far, near} {
				err := g.controlPublicOnly(t.Context(), "tcp", at, nil)
				if (err == nil) != verdicts[i] || err != nil && !errors.Is(err, ErrNotPublic) {
					t.Errorf("%s for a server %s: %v", text, []string{"far away", "near"}[i], err)
				}
			}
		}
	}
	for _, at := range []string{"", "x", "8.8.8.8", "localhost:80", ":80"} {
		if far.controlPublicOnly(t.Context(), "tcp", at, nil) == nil || near.controlPublicOnly(t.Context(), "tcp",
			at, nil) == nil {
			t.Errorf("%q was dialled", at)
		}
	}
}

// TestGuardOfRow lets an address be near that the row itself names: it is its owner's word.
func TestGuardOfRow(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{})
	far := NewClient("https://8.8.8.8/mcp")
	if resp, err := far.Get(p.Issuer); err == nil {
		_ = resp.Body.Close()
		t.Error("a server far away had us call this machine")
	} else if !errors.Is(err, ErrNotPublic) {
		t.Error(err)
	}
	named := NewClient("https://8.8.8.8/mcp", p.Issuer)
	resp, err := named.Get(p.URL(oauthtest.ServerMetadata))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp, err := named.Get(strings.Replace(p.URL(oauthtest.ServerMetadata), "127.0.0.1", "localhost",
		1)); err == nil {
		_ = resp.Body.Close()
		t.Error("another name of the same address was called")
	}
}

// TestGuardAsksAgain does not take a name that cannot be resolved for now for one that is far away for ever.
func TestGuardAsksAgain(t *testing.T) {
	answers := map[bool][]netip.Addr{true: {netip.MustParseAddr("10.0.0.1")}}
	up := false
	g := newGuard("https://intranet.example/mcp")
	g.verifyHost = func(_ context.Context, a netip.Addr) bool { return a == answers[true][0] }
	g.lookupIPs = func(context.Context, string, string) ([]netip.Addr, error) {
		if !up {
			return nil, errors.New("no such host for now")
		}
		return answers[up], nil
	}
	if g.controlPublicOnly(t.Context(), "tcp", "10.0.0.2:443", nil) == nil {
		t.Error("a name that nobody knows is near")
	}
	up = true
	if err := g.controlPublicOnly(t.Context(), "tcp", "10.0.0.2:443", nil); err != nil {
		t.Error(err)
	}
	up = false
	if err := g.controlPublicOnly(t.Context(), "tcp", "10.0.0.2:443", nil); err != nil {
		t.Error(err)
	}
	mixed := newGuard("https://mixed.example/mcp")
	mixed.lookupIPs = func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("8.8.8.8")}, nil
	}
	if mixed.controlPublicOnly(t.Context(), "tcp", "10.0.0.2:443", nil) == nil {
		t.Error("a name that is far away too is near")
	}
}

// TestGuardBehindProxy lets the proxy that the person's environment names be dialled, and nothing else that is near:
// neither beside the proxy, nor by way of it.
func TestGuardBehindProxy(t *testing.T) {
	proxy := newServer(t, func(w http.ResponseWriter,
		r *http.Request) {
		t.Errorf("the proxy was asked for %s", r.Host)
	})
	beside := newServer(t, func(w http.ResponseWriter,
		r *http.Request) {
		t.Errorf("%s was called beside the proxy", r.URL)
	})
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	g := newGuard("https://8.8.8.8/mcp", "https://10.0.0.9/as", "https://169.254.169.254/as")
	g.proxyFromEnv = func(*http.Request) (*url.URL, error) { return at, nil }
	g.lookupIPs = func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if known, ok := map[string]string{"near.example": "10.0.0.1", "far.example": "8.8.4.4"}[host]; ok {
			return []netip.Addr{netip.MustParseAddr(known)}, nil
		}
		return nil, errors.New("no such host")
	}
	for to, good := range map[string]bool{
		"https://8.8.4.4": true, "https://far.example": true, "https://unknown.example": true, "https://10.0.0.9": true,
		"https://near.example": false, "https://10.0.0.1": false, "https://[::1]:444": false,
		"https://169.254.169.254": false,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.proxyFor(req); (err == nil) != good || err != nil && !errors.Is(err, ErrNotPublic) {
			t.Errorf("%s by way of a proxy: %v", to, err)
		}
	}
	for address, good := range map[string]bool{proxy.URL: true, beside.URL: false} {
		conn, err := g.dial(t.Context(), "tcp", strings.TrimPrefix(address, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		if (err == nil) != good {
			t.Errorf("%s behind a proxy: %v", address, err)
		}
	}
}

// TestOA7Redirects keeps requests within an origin.
func TestOA7Redirects(t *testing.T) {
	elsewhere := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s arrived elsewhere",
			r.Method, r.URL)
	})
	srv := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		switch r.URL.Path {
		case "/elsewhere":
			http.Redirect(w, r, elsewhere.URL, n)
		case "/loop":
			http.Redirect(w, r, "/loop?n=302", n)
		case "/here":
			http.Redirect(w, r, "/there", n)
		}
	})
	client := NewClient(srv.URL)
	for _, status := range []string{"301", "302", "303", "307", "308"} {
		for path, good := range map[string]bool{"/elsewhere": false, "/loop": false, "/here": true} {
			resp, err := client.Get(srv.URL + path + "?n=" + status)
			if err == nil {
				_ = resp.Body.Close()
			}
			if (err == nil) != good {
				t.Errorf("%s %s: %v", path, status, err)
			}
		}
		resp, err := client.Post(srv.URL+"/elsewhere?n="+status, "text/plain", strings.NewReader("secret"))
		if err == nil {
			_ = resp.Body.Close()
			t.Errorf("a POST followed %s", status)
		}
	}
}

func newServer(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}
