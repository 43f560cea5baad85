package policy

import (
	"path"
	"slices"
	"strings"
)

// cleanURI returns a URI in the form in which servers use it. Characters that URL parsers ignore are removed, percent
// escapes are decoded, and then "." and ".." are resolved.
func cleanURI(uri string) string {
	uri = strings.ReplaceAll(trimAsURL(uri), `\`, "/")
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok {
		return uri
	}
	authority := ""
	if after, is := strings.CutPrefix(rest, "//"); is {
		end := strings.IndexByte(after, '/')
		if end < 0 {
			end = len(after)
		}
		authority, rest = "//"+unescapeURIPath(after[:end]), after[end:]
	}
	if rest = unescapeURIPath(rest); strings.HasPrefix(rest, "/") {
		rest = cleanPath(rest, "")
	}
	return scheme + ":" + authority + rest
}

// defaultPorts maps URI schemes to their default ports.
var defaultPorts = map[string]string{"http": ":80", "https": ":443", "ws": ":80", "wss": ":443", "ftp": ":21",
	"ssh": ":22", "gopher": ":70"}

// uriReadings returns the URIs that parsers may read from a URI, in two lists. The URIs in same are equal to it by the
// rules for URLs, or so similar that a rule that allows must match them too. They lack the user or the default port, or
// have a ".." that leads above the path of the host. The URIs in also are read only by careless parsers. They lack the
// port, the query or the fragment, or their host is exchanged with the first path segment.
func uriReadings(uri string) (same, also []string) {
	same = []string{cleanURI(uri)}
	scheme, rest, ok := strings.Cut(same[0], ":")
	if scheme = strings.ToLower(scheme); !ok || scheme == strings.TrimSuffix(fileScheme, ":") {
		return same, nil
	}
	raw, _, _ := strings.Cut(strings.ReplaceAll(trimAsURL(uri), `\`, "/"), "#")
	if _, raw, _ = strings.Cut(raw, ":"); strings.HasPrefix(raw, "//") && hasParentSegment(unescapeURIPath(raw)) {
		same = append(same, scheme+"://"+strings.TrimLeft(path.Clean("/"+unescapeURIPath(raw)), "/"))
	}
	if after, is := strings.CutPrefix(rest, "//"); is {
		host, path := after, ""
		if i := strings.IndexByte(after, '/'); i >= 0 {
			host, path = after[:i], after[i:]
		}
		bare := host[strings.LastIndexByte(host, '@')+1:]
		bare = strings.TrimSuffix(bare, defaultPorts[scheme])
		if i := strings.LastIndexByte(bare, ':'); i >= 0 && bare[i:] == ":" {
			bare = bare[:i]
		}
		if bare != host {
			same = append(same, scheme+"://"+bare+path)
		}
		if i := strings.LastIndexByte(bare, ':'); i > 0 && strings.Trim(bare[i+1:], "0123456789") == "" {
			also = append(also, scheme+"://"+bare[:i]+path)
		}
		also = append(also, scheme+"://"+strings.TrimSuffix(bare, ".")+path)
	}
	for _, one := range slices.Concat(same, also) {
		also = append(also, regrouped(one)...)
	}
	return same, also
}

// regrouped returns a URI with zero to three slashes after the scheme, each with and without query and fragment. In
// these URIs the host may become the first path segment, or the first path segment may become the host.
func regrouped(uri string) (all []string) {
	scheme, rest, _ := strings.Cut(uri, ":")
	whole := strings.TrimLeft(rest, "/")
	begin, _, _ := strings.Cut(whole, "#")
	begin, _, _ = strings.Cut(begin, "?")
	for _, names := range []string{whole, begin} {
		for _, slashes := range []string{":", ":/", "://", ":///"} {
			all = append(all, scheme+slashes+names)
		}
	}
	return all
}
