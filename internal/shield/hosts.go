package shield

import (
	"net/netip"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
)

// namesNewHost reports whether the text after contains a host that the text before does not contain.
func namesNewHost(before, after string) bool {
	known := hostsIn(before)
	for host := range hostsIn(after) {
		if !known[host] {
			return true
		}
	}
	return false
}

// These variables find hosts in texts. unmaskDots restores the dots of a host that was written with other characters.
var (
	unmaskDots   = strings.NewReplacer("[.]", ".", "．", ".", "｡", ".")
	urlAuthority = lazyregexp.New("[A-Za-z][A-Za-z0-9+.-]*://([^\\s/?#\"'<>`\\\\,;()]+)")
	// dottedName matches a name with dots. Ideographs are excluded, because a host may follow them without a blank.
	dottedName = lazyregexp.New(`[\p{Latin}\p{Cyrillic}\p{Greek}\d_-]+(?:\.[\p{Latin}\p{Cyrillic}\p{Greek}\d_-]+)+`)
	// ipv6Candidate matches text that may be an IPv6 address.
	ipv6Candidate = lazyregexp.New(`[0-9A-Fa-f.]*(?::[0-9A-Fa-f.]*){2,8}`)
	// versionPrefix matches a word such as "version" or "section" before a number with dots. Such a number is not an IP
	// address.
	versionPrefix = lazyregexp.New(`(?i)\b(?:versions?|ver|releases?|revision|build|section|chapter|clause)[\s:="']*$`)
)

// hostsIn returns the hosts and IP addresses in a text, in lower case.
func hostsIn(text string) map[string]bool {
	text, _ = CanonicalText(text)
	text = unmaskDots.Replace(text)
	all := map[string]bool{}
	for _, m := range urlAuthority().FindAllStringSubmatch(text, -1) {
		host := m[1][strings.LastIndexByte(m[1], '@')+1:]
		if at := strings.LastIndexByte(host, ':'); at > strings.LastIndexByte(host, ']') {
			host = host[:at]
		}
		all[strings.Trim(strings.ToLower(host), "[].")] = true
	}
	for _, m := range dottedName().FindAllStringIndex(text, -1) {
		name := strings.Trim(text[m[0]:m[1]], "-_")
		if addr, err := netip.ParseAddr(name); err == nil && addr.Is4() {
			if !versionPrefix().MatchString(text[max(0, m[0]-24):m[0]]) {
				all[name] = true
			}
		} else if looksLikeHost(name) {
			all[strings.ToLower(name)] = true
		}
	}
	for _, m := range ipv6Candidate().FindAllStringIndex(text, -1) {
		name := strings.TrimRight(text[m[0]:m[1]], ".")
		framed := m[0] > 0 && text[m[0]-1] == '[' && strings.HasPrefix(text[m[1]:], "]")
		if framed && m[0] > 1 && (isWordByte(text[m[0]-2]) || text[m[0]-2] == ')') { // an index into a list
			continue
		}
		if m[0] > 0 && isWordByte(text[m[0]-1]) || m[1] < len(text) && isWordByte(text[m[1]]) || !framed &&
			strings.Count(name, ":") < 3 {
			continue
		}
		if addr, err := netip.ParseAddr(name); err == nil && addr.Is6() {
			all[addr.String()] = true
		}
	}
	return all
}

func isWordByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_'
}

// These sets decide by the last label whether a dotted name is a host. topLevelDomains excludes domains that are also
// endings of file names or names of program members. A name with an excluded ending is a host only after a URL scheme
// or "www". A two-letter country domain counts if the label before it is in secondLevelDomains.
var (
	topLevelDomains = sync.OnceValue(func() map[string]bool {
		return wordSet(`com org net edu gov mil biz onion arpa io ai co dev xyz tech shop club icu asia
		ru su cn de uk fr nl eu jp kr au ca ch es dk fi cz sk hu gr ee lv il ir ua kz tr tw vn hk sg th ph nz mx cl za ar se tk ga gq ly gg nu ws tv us рф`)
	})
	secondLevelDomains = wordSet("com co org net gov edu ac")
	// upperCaseDomains are the domains that may be written in capitals. Any other ending in capitals belongs to a
	// sentence, or to a name such as ASP.NET.
	upperCaseDomains = wordSet("com org edu gov biz")
	// packagePrefixes begin the names of software packages, such as "com.example.app". These are reversed host names.
	packagePrefixes = wordSet("com org net io java javax")
)

// looksLikeHost reports whether a dotted name is a host, judged only by its labels.
func looksLikeHost(name string) bool {
	labels := strings.Split(name, ".")
	n := len(labels) - 1
	last, first := labels[n], strings.ToLower(labels[0])
	lower := strings.ToLower(last)
	switch {
	case first == "www" && n > 1:
		return true
	case packagePrefixes[first]:
		return false
	case lower != last && !upperCaseDomains[lower]:
		return false
	case topLevelDomains()[lower] || strings.HasPrefix(lower, "xn--"):
		return true
	}
	return n > 1 && len(lower) == 2 && lower[0] >= 'a' && lower[0] <= 'z' && lower[1] >= 'a' && lower[1] <= 'z' &&
		secondLevelDomains[labels[n-1]]
}
