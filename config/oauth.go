package config

import (
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// OAuthSettings configures whose access tokens the HTTP endpoint accepts, and which claims they need. Without Issuers
// it accepts none.
type OAuthSettings struct {
	// Issuers are URLs exactly as in the issuers' metadata. PublicURL is where clients reach the HTTP endpoint.
	Issuers   []string
	PublicURL string
	// Audience is the audience that tokens must have; empty means the URL of the HTTP endpoint.
	Audience string
	// Scopes maps each of the issuer's scopes to Drawbridge scopes; nil is the default.
	Scopes map[string][]string
	// AllowWithoutSubject accepts tokens without a subject; nil means false.
	AllowWithoutSubject *bool
	// ClockSkew is the tolerated difference of an issuer's clock.
	ClockSkew time.Duration
	// IntrospectionURL is the endpoint that reports whether a token is active. IntrospectionClient is our client there;
	// its secret is in the file at the absolute path IntrospectionSecretFile.
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
