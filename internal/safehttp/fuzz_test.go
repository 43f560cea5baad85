package safehttp

import (
	"net/netip"
	"slices"
	"testing"
)

// registered are the addresses that are not global by the registries of special-purpose addresses (RFC 6890 and what
// came after it, as of 2026), and those of multicast. The table is the test's own: it does not look at the guard's.
func registered() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.88.99.0/24",
		"192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"::/128", "::1/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/32", "2001:2::/48", "2001:10::/28",
		"2001:db8::/32", "2002::/16", "3fff::/20",
		"5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	} {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// carried gives the address of the older kind that one of the newer kind stands for: mapped, translated, or through a
// relay.
func carried(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case a.Is4In6():
		return a.Unmap(), true
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a), netip.MustParsePrefix("::/96").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return a, false
}

func isRegistered(a netip.Addr) bool {
	return slices.ContainsFunc(registered(), func(p netip.Prefix) bool { return p.Contains(a) })
}

// FuzzDialled is row FZ-12: no address that the registries call special is dialled on the word of a server that is
// far, in whatever form it comes; nor is one of those where machines are told their secrets, on anybody's word.
func FuzzDialled(f *testing.F) {
	for _, p := range registered() {
		first := p.Addr().As16()
		f.Add(first[:], true)
		f.Add(first[:], false)
	}
	for _, text := range []string{"8.8.8.8", "2606:4700::1111", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1",
		"::ffff:169.254.169.254", "2002:7f00:1::", "fd00:ec2::254", "168.63.129.16", "100.100.100.200"} {
		a := netip.MustParseAddr(text).As16()
		f.Add(a[:], false)
		f.Add(a[:], true)
	}
	far, own := newGuard("https://8.8.8.8/mcp"), newServerGuard("https://mcp.example/", true)
	f.Fuzz(func(t *testing.T, raw []byte, zone bool) {
		if len(raw) < 16 {
			return
		}
		a := netip.AddrFrom16([16]byte(raw[:16]))
		inner, carries := carried(a)
		at := netip.AddrPortFrom(a, 443).String()
		if zone && !a.Is4In6() {
			at = netip.AddrPortFrom(a.WithZone("eth0"), 443).String()
		}
		near := isRegistered(a) || carries && isRegistered(inner)
		if err := far.controlPublicOnly(t.Context(), "tcp", at, nil); near && err == nil {
			t.Errorf("%s is called", at)
		}
		for _, text := range []string{"169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254",
			"fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"} {
			if secret := netip.MustParseAddr(text); a == secret || inner == secret {
				if err := own.controlFor("mcp.example")(t.Context(), "tcp", at, nil); err == nil {
					t.Errorf("%s is called, where secrets are told", at)
				}
			}
		}
	})
}
