package config

import (
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// OAuthSettings configures the issuers whose access tokens the HTTP endpoint accepts, and the claims that the tokens
// must have. Without Issuers, the endpoint accepts no access tokens.
type OAuthSettings struct {
	// Issuers are the issuers' URLs, exactly as in their metadata. PublicURL is the URL at which clients reach the HTTP
	// endpoint, without /mcp.
	Issuers   []string
	PublicURL string
	// Audience is the audience that tokens must have; empty means the URL of the HTTP endpoint.
	Audience string
	// Scopes maps each scope of the issuer to the Drawbridge scopes that it grants; nil means the default.
	Scopes map[string][]string
	// AllowWithoutSubject controls whether tokens without a subject are accepted; nil means false.
	AllowWithoutSubject *bool
	// ClockSkew is the tolerated difference between the issuer's clock and the local clock.
	ClockSkew time.Duration
	// IntrospectionURL is the endpoint that reports whether a token is active (RFC 7662). IntrospectionClient is
	// Drawbridge's client id at this endpoint. IntrospectionSecretFile is the absolute path of the file that contains
	// the client's secret.
	IntrospectionURL, IntrospectionClient, IntrospectionSecretFile string
}

func (r *settingsReader) readIssuers(v configfile.Node) error {
	items := v.Items
	if v.Kind != configfile.List {
		items = []configfile.Node{v}
	}
	for _, item := range items {
		var issuer string
		if r.readWebURL(&issuer, item) != nil {
			return mustBeError("an https:// URL, or a list of them")
		}
		r.settings.OAuth.Issuers = append(r.settings.OAuth.Issuers, issuer)
	}
	return nil
}
