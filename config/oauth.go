package config

import (
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// OAuthSettings configures whose access tokens the HTTP endpoint accepts, and which claims they need. Without Issuers
// it accepts none.
type OAuthSettings struct {
	// Issuers are URLs as the issuers' own metadata have them. PublicURL is where clients reach the door from.
	Issuers   []string
	PublicURL string
	// Audience is what tokens must be for, where that is not the door's URL.
	Audience string
	// Scopes maps each of the issuer's scopes to Drawbridge scopes; nil is the default.
	Scopes map[string][]string
	// AllowWithoutSubject lets tokens count that have no subject; nil is no.
	AllowWithoutSubject *bool
	// ClockSkew is how far an issuer's clock may be off.
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
