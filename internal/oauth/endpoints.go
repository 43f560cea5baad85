package oauth

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// checkAuthorizationEndpoint returns an error for an authorization endpoint whose address has a fragment, or a
// parameter that only we may choose: with two values of it, the authorization server may take the wrong one (RFC 6749,
// section 3.1).
func checkAuthorizationEndpoint(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("is not a valid URL")
	case strings.Contains(address, "#"):
		return errors.New("has a fragment, which it must not have")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("has a query that cannot be read")
	}
	for name := range query {
		if isOwnParam(name) {
			return fmt.Errorf("has the parameter %s, which must not be part of it", printable(name))
		}
	}
	return nil
}

// isOwnParam reports whether a server may read the name of a query parameter as one of those that protect a sign-in.
// Some frameworks ignore case, write spaces and dots as underscores, and read "name[]" as a list.
func isOwnParam(name string) bool {
	name, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(name)), "[")
	switch strings.NewReplacer(" ", "_", ".", "_").Replace(name) {
	case "redirect_uri", "state", "code_challenge", "code_challenge_method", "code_verifier", "request", "request_uri":
		return true
	}
	return false
}

// withoutParams returns an address without the query parameters that sent sets.
func withoutParams(address string, sent url.Values) string {
	base, query, found := strings.Cut(address, "?")
	if !found {
		return address
	}
	var kept []string
	for _, piece := range strings.Split(query, "&") {
		name, _, _ := strings.Cut(piece, "=")
		if name, err := url.QueryUnescape(name); piece != "" && (err != nil || !sent.Has(name)) {
			kept = append(kept, piece)
		}
	}
	if len(kept) == 0 {
		return base
	}
	return base + "?" + strings.Join(kept, "&")
}
