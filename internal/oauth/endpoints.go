package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// AcceptEndpoints stores that the owner accepts sign-ins with the two origins in e: one of the sign-in page, and one of
// the token endpoint.
func (c *Credential) AcceptEndpoints(ctx context.Context, e drawbridge.SignInEndpoints) error {
	unlock, err := c.lockCredential(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := c.currentRecord()
	if err != nil || slices.Contains(r.AcceptedEndpoints, e) {
		return err
	}
	r.AcceptedEndpoints = append(r.AcceptedEndpoints, e)
	if over := len(r.AcceptedEndpoints) - maxAcceptedEndpoints; over > 0 {
		r.AcceptedEndpoints = slices.Delete(r.AcceptedEndpoints, 0, over)
	}
	return c.lockAndSave(r)
}

// maxAcceptedEndpoints is the maximum number of accepted pairs of origins that a credential stores. If there are more,
// the oldest pairs are removed.
const maxAcceptedEndpoints = 8

// checkEndpoints returns an error if the sign-in page and the token endpoint are on different origins, and the pair was
// not accepted. page is the address of the sign-in page. Without this check, a hostile authorization server could name
// the sign-in page of an honest server. The code and its verifier would then be sent to the hostile server. An honest
// server can prevent this only if it names itself in its authorization response (RFC 9700, section 4.4), and many
// servers do not.
func (c *Credential) checkEndpoints(r credentialRecord, s authServer, page string) error {
	e := drawbridge.SignInEndpoints{Page: safehttp.Origin(page), Token: safehttp.Origin(s.Token)}
	if e.Page == e.Token || c.server.accepts(e) || slices.Contains(r.AcceptedEndpoints, e) ||
		c.server.ExchangesCallerToken && c.ownerAccepts(e) {
		return nil
	}
	return &drawbridge.EndpointsNotAcceptedError{Server: c.server.ID, Endpoints: e,
		Issuer: safehttp.Origin(cmp.Or(s.Issuer, s.Token))}
}

// accepts reports whether the server's configuration accepts the two origins. It does if AcceptedEndpoints contains
// them, or if the configuration itself sets both endpoints. A configuration in a project file accepts no origins,
// because its author may not be the owner.
func (s Server) accepts(e drawbridge.SignInEndpoints) bool {
	named := s.TokenURL != "" && safehttp.Origin(s.TokenURL) == e.Token &&
		(s.AuthorizationURL != "" && safehttp.Origin(s.AuthorizationURL) == e.Page ||
			s.DeviceURL != "" && safehttp.Origin(s.DeviceURL) == e.Page)
	return !s.FromProject && (named || s.AcceptedEndpoints == e)
}

// ownerAccepts reports whether the owner has accepted the two origins for the owner's own credential at the server.
func (c *Credential) ownerAccepts(e drawbridge.SignInEndpoints) bool {
	server := c.server
	server.Principal, server.ExchangesCallerToken = server.Owner, false
	r, err := c.manager.Credential(server, c.resolveAuth).currentRecord()
	return err == nil && slices.Contains(r.AcceptedEndpoints, e)
}

// elsewhere lists the endpoints whose origin differs from the issuer's, such as "token endpoint at
// https://tokens.example.com". For a sign-in on another device, page is the address of the sign-in page; otherwise it
// is empty.
func (s authServer) elsewhere(page string) string {
	endpoints := []struct{ name, address string }{
		{"authorization endpoint", s.Authorization}, {"page", page}, {"device endpoint", s.Device},
		{"token endpoint", s.Token}, {"registration endpoint", s.Registration}, {"revocation endpoint", s.Revocation},
	}
	var texts []string
	for _, e := range endpoints {
		unused := e.name == "authorization endpoint" && page != "" || e.name == "device endpoint" && page == ""
		if at := safehttp.Origin(e.address); e.address != "" && !unused && at != safehttp.Origin(s.Issuer) {
			texts = append(texts, e.name+" at "+printable(at))
		}
	}
	return strings.Join(texts, ", ")
}

// checkAuthorizationEndpoint returns an error if the address of an authorization endpoint has a fragment, or a
// parameter that only Drawbridge may set. If such a parameter occurs twice, the authorization server may use the wrong
// value (RFC 6749, section 3.1).
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

// isOwnParam reports whether a server may read name as a query parameter that protects a sign-in, such as "state". Some
// frameworks ignore case, change spaces and dots to underscores, and read "name[]" as a list.
func isOwnParam(name string) bool {
	name, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(name)), "[")
	switch strings.NewReplacer(" ", "_", ".", "_").Replace(name) {
	case "redirect_uri", "state", "code_challenge", "code_challenge_method", "code_verifier", "request", "request_uri":
		return true
	}
	return false
}

// withoutParams returns an address without the query parameters whose names are in sent, which Drawbridge adds itself.
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
