package oauth

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// ServerFromConfig returns the Server for one principal. row is the configuration of the MCP server. owner is the
// principal who runs this Drawbridge. ServerFromConfig returns false if the server needs no sign-in: the configuration
// contains an Authorization header, or its auth type is "none" or "apikey". A stdio server needs a sign-in only if its
// configuration contains an issuer, a token URL or the name of a credential.
func ServerFromConfig(row config.Server, principal, owner string) (Server, bool) {
	auth := config.Auth{}
	if row.Auth != nil {
		auth = *row.Auth
	}
	authorized := slices.ContainsFunc(row.Headers, func(p config.NameValue) bool {
		return strings.EqualFold(p.Name,
			"Authorization")
	})
	switch {
	case auth.Type == "none", auth.Type == "apikey", authorized:
		return Server{}, false
	case row.URL == "" && auth.Issuer == "" && auth.TokenURL == "" && auth.CredentialID != "":
		return Server{ID: row.ID, CredentialName: auth.CredentialID, Borrowed: true}, true
	case row.URL == "" && auth.Issuer == "" && auth.TokenURL == "":
		return Server{}, false
	}
	s := Server{
		ID: row.ID, URL: row.URL, CredentialName: auth.CredentialID, Issuer: auth.Issuer,
		AuthorizationURL: auth.AuthorizationURL, TokenURL: auth.TokenURL, DeviceURL: auth.DeviceURL,
		RegistrationURL: auth.RegistrationURL,
		ClientID:        auth.ClientID, ClientSecret: drawbridge.NewSecret(auth.ClientSecret),
		AcceptedEndpoints: auth.AcceptEndpoints,
		ClientMetadataURL: auth.ClientMetadataURL,
		Scopes:            strings.Join(auth.Scopes, " "), NoScopes: auth.Scopes != nil && len(auth.Scopes) == 0,
		Resource:    auth.Resource,
		RedirectURI: auth.RedirectURI, CallbackPort: auth.CallbackPort, CallbackPath: auth.CallbackPath,
	}
	s.FromProject = row.Origin.Kind == config.OriginProject
	if row.URL == "" && row.Origin.Kind == config.OriginProject {
		s.Project = row.Origin.Path
	}
	switch grant := GrantKind(auth.Type); grant {
	case ClientCredentialsGrant, EnterpriseGrant, WorkloadGrant:
		s.Grant, s.IDP = grant, auth.IDPIssuer
	}
	switch row.Credentials {
	case "":
	case config.PerCallerCredentials:
		s.Principal, s.ExchangesCallerToken, s.Owner = principal, principal != owner, owner
	default:
		s.CredentialName = row.Credentials
	}
	return s, true
}

// configuredClient returns the OAuth client that the server's configuration names, with references resolved. If the
// configuration does not name a client, the returned client has no ID.
func (c *Credential) configuredClient(ctx context.Context) (clientIdentity, error) {
	known := clientIdentity{ID: c.server.ClientID, Secret: c.server.ClientSecret.Reveal()}
	if known.ID == "" || c.resolveAuth == nil {
		return known, nil
	}
	auth, err := c.resolveAuth(ctx)
	if err != nil {
		return clientIdentity{}, err
	}
	if auth.ClientID == "" {
		return clientIdentity{}, errors.New("resolve the client_id in \"auth\": it is empty")
	}
	return clientIdentity{ID: auth.ClientID, Secret: auth.ClientSecret, Key: auth.PrivateKey}, nil
}
