package oauthtest

import (
	"encoding/json"
	"time"
)

// Options are the settings that cannot change while a provider runs. With zero Options, the provider follows the
// specifications.
type Options struct {
	// Knobs are the initial knobs; ChangeKnobs changes them.
	Knobs Knobs
	// IssuerPath is the path of the issuer, such as "/tenant"; "" means no path.
	IssuerPath string
	// ResourcePath is the path of the MCP server; "" is "/mcp".
	ResourcePath string
	// IssuerHost and ResourceHost are the hosts in the URLs: "127.0.0.1", which is the default, or "localhost".
	IssuerHost, ResourceHost string
	// OneOrigin puts the MCP server on the origin of the authorization server.
	OneOrigin bool
	// TLS makes both servers use https, with a certificate that the client of Provider.HTTP trusts.
	TLS bool
	// Clients are the clients registered at the start.
	Clients []Client
	// Documents are client ID metadata documents by URL. For these URLs, the provider does not send a request.
	Documents map[string]json.RawMessage
	// Resources are resources for which tokens are issued, in addition to the MCP server.
	Resources []string
}

// A Client is a client that the provider knows.
type Client struct {
	ID, Secret string
	// Method is the method of client authentication: none, client_secret_basic or client_secret_post. If it is empty, a
	// client without a Secret uses none, and a client with a Secret uses either of the others.
	Method string
	// Redirects are the client's redirect URIs. The port of a loopback URI may differ, unless Authorization.ExactPort
	// is set.
	Redirects []string
	// Name is shown on the consent page.
	Name string
	// Grants are the grant types that the client may use; nil means all.
	Grants []string
	// SecretExpires is when the Secret expires; zero means never.
	SecretExpires time.Time
}

// Knobs change the behaviour of a provider. With zero Knobs, the provider follows the specifications.
type Knobs struct {
	Discovery     Discovery
	Challenge     Challenge
	Registration  Registration
	Authorization Authorization
	Tokens        Tokens
	Device        Device
	Server        Server
	// Faults are the faults of endpoints. For the token endpoint, a key such as "token/refresh_token" sets the fault
	// for one grant type. That fault then applies in place of the fault of the whole endpoint.
	Faults map[Endpoint]Fault
	// Skew is how far the provider's clock is ahead of the real time; a negative Skew means that it is behind.
	Skew time.Duration
	// User is the person who signs in; "" means "ada".
	User string
}

// An Endpoint names a part of the provider.
type Endpoint string

// The endpoints.
const (
	ResourceMetadata Endpoint = "resource-metadata"
	ServerMetadata   Endpoint = "server-metadata"
	Keys             Endpoint = "jwks"
	Register         Endpoint = "register"
	Authorize        Endpoint = "authorize"
	Consent          Endpoint = "consent"
	Token            Endpoint = "token"
	TokenByRefresh   Endpoint = "token/refresh_token"
	TokenByCode      Endpoint = "token/authorization_code"
	DeviceStart      Endpoint = "device_authorization"
	DevicePage       Endpoint = "device"
	Revoke           Endpoint = "revoke"
	Introspect       Endpoint = "introspect"
	MCP              Endpoint = "mcp"
	// Nothing is any path without an endpoint and without metadata.
	Nothing Endpoint = "nothing"
)

// A Fault changes the response to requests of an endpoint. A Fault with Slow alone delays the response.
type Fault struct {
	// Times is how many requests the fault applies to; 0 means all.
	Times int
	// After makes the endpoint handle the request before the fault applies. Only the response is then lost or replaced.
	After bool
	// Slow is the delay of the response.
	Slow time.Duration
	// Status, Type, Body and Header are the response, where Type is the content type. With Status 0, the endpoint's own
	// response is sent.
	Status     int
	Type, Body string
	Header     map[string]string
	// Drop closes the connection without a response.
	Drop bool
}

// A MetadataPlace is a path at which metadata are served.
type MetadataPlace string

// The places of metadata. Comments show the path of each place for the issuer path /tenant and the resource path /mcp.
// The places named Odd are paths of older servers, with the metadata of the authorization server.
const (
	PRMPath      MetadataPlace = "prm-path"  // /.well-known/oauth-protected-resource/mcp
	PRMRoot      MetadataPlace = "prm-root"  // /.well-known/oauth-protected-resource
	PRMElsewhere MetadataPlace = "prm-else"  // /about/resource.json: only the challenge names it
	ASPath       MetadataPlace = "as-path"   // /.well-known/oauth-authorization-server/tenant
	ASRoot       MetadataPlace = "as-root"   // /.well-known/oauth-authorization-server
	OIDCInserted MetadataPlace = "oidc-path" // /.well-known/openid-configuration/tenant
	OIDCAppended MetadataPlace = "oidc-tail" // /tenant/.well-known/openid-configuration
	OIDCRoot     MetadataPlace = "oidc-root" // /.well-known/openid-configuration
	OddMetadata  MetadataPlace = "odd-oauth" // /oauth/metadata
	OddMCPAuth   MetadataPlace = "odd-mcp"   // /.mcp/auth
	OddAuthorize MetadataPlace = "odd-auth"  // /authorize, if requested without a query
)

// Discovery sets the content and the paths of the metadata.
type Discovery struct {
	// Places are the places that serve metadata; nil means PRMPath and ASPath. An empty list means no place.
	Places []MetadataPlace
	// OnResource serves the authorization server's metadata on the origin of the MCP server, too.
	OnResource bool
	// Issuer and Resource replace the identifiers in the metadata. AuthorizationServers replaces the list in the
	// resource's metadata. If they are empty, the true identifiers are sent.
	Issuer, Resource     string
	AuthorizationServers []string
	// Set and SetPRM replace members in the metadata of the authorization server and of the resource; nil removes a
	// member.
	Set, SetPRM map[string]any
	// Padding is the number of spaces appended to each document.
	Padding int
	// Redirect is the URL to which requests for metadata are redirected.
	Redirect string
}

// A ChallengeForm is the form in which a response with status 401 tells the client where to sign in.
type ChallengeForm string

// The forms of a challenge.
const (
	ChallengeStandard   ChallengeForm = ""            // Bearer resource_metadata="…", scope="…"
	ChallengeBare       ChallengeForm = "bare"        // Bearer
	ChallengeNone       ChallengeForm = "none"        // no header at all
	ChallengePairs      ChallengeForm = "pairs"       // Bearer authorization_uri="…", token_uri="…"
	ChallengeBody       ChallengeForm = "body"        // a JSON object in the body
	ChallengeAuthServer ChallengeForm = "auth-server" // Mcp-Auth-Server: issuer
)

// Challenge sets the response to a request without a valid token.
type Challenge struct {
	Form ChallengeForm
	// Status is the status of the response; 0 means 401.
	Status int
	// Scope is the challenge's parameter scope; "" means the scope of the server, "-" omits the parameter.
	Scope string
	// Under is the member of the body that contains the endpoints: oauth, authorization, auth, or "" for the top level.
	Under string
	// AuthorizationKey and TokenKey are the names of the endpoints in the pairs or in the body. The defaults are
	// authorization_uri and token_uri in pairs, authorization_endpoint and token_endpoint in a body. ClientIDKey and
	// ScopesKey are the names of the client ID (ClientID) and of the scopes in the body; "" omits them.
	AuthorizationKey, TokenKey, ClientIDKey, ScopesKey string
	ClientID                                           string
	// ScopeList sends the scopes in the body as a list.
	ScopeList bool
	// InQuery adds ClientID and the scopes to the query of the authorization URL.
	InQuery bool
}

// Registration sets how clients are registered.
type Registration struct {
	// Absent turns dynamic registration off.
	Absent bool
	// InitialToken is the token that registration requires; "" means none.
	InitialToken string
	// Secret issues a secret to every client, valid for SecretLife (0 means for ever).
	Secret     bool
	SecretLife time.Duration
	// RejectRedirects are texts that a redirect URI must not contain.
	RejectRedirects []string
	// Documents accepts client IDs that are URLs of metadata documents.
	Documents bool
	// Methods are the token_endpoint_auth_methods_supported; nil means none, client_secret_basic and
	// client_secret_post.
	Methods []string
}

// Authorization sets how the authorization endpoint behaves.
type Authorization struct {
	// PKCE is the support of PKCE. "" requires S256 and advertises it in the metadata. "optional" advertises S256, and
	// also accepts requests without a challenge. "unadvertised" accepts the same requests, but advertises nothing.
	// "plain" supports only the method plain.
	PKCE string
	// Iss is the parameter iss of the response: "" sends the true issuer, "-" omits the parameter, any other value is
	// sent itself. IssUnadvertised omits the support of iss from the metadata.
	Iss             string
	IssUnadvertised bool
	// State is the parameter state of the response: "" sends the state of the request, "-" omits the parameter, any
	// other value is sent itself.
	State string
	// Error, if not empty, is an error code with which all sign-in requests are refused, such as access_denied.
	Error string
	// ExactPort requires that the port of a loopback redirect URI is the registered one. LoopbackNames treats localhost
	// as equal to 127.0.0.1.
	ExactPort, LoopbackNames bool
	// Indicator sets how the parameter resource is handled. "" requires the parameter in each request, "ignore" ignores
	// it, "reject" refuses requests that have it.
	Indicator string
	// Consent shows a page with the buttons Allow and Deny. Without Consent, sign-in requests are granted at once.
	Consent bool
	// Forward is the URL of another provider's authorization endpoint, to which the browser is redirected with the same
	// query. ForwardClient, if set, replaces the client ID in the query.
	Forward, ForwardClient string
	// CodeLife is how long a code is valid; 0 means a minute.
	CodeLife time.Duration
}

// The values of Tokens.ExpiresIn for an expires_in that is missing or is not an integer.
const (
	ExpiresAbsent = "absent" // no member expires_in
	ExpiresText   = "text"   // the number as a string
	ExpiresFloat  = "float"  // 3600.0
)

// Tokens sets how the token endpoint behaves.
type Tokens struct {
	// Life is how long an access token is valid; 0 means an hour.
	Life time.Duration
	// ExpiresIn is the form of the member expires_in. "" means an integer. Other values are ExpiresAbsent, ExpiresText,
	// ExpiresFloat, or the JSON value to send.
	ExpiresIn string
	// Rotation sets the refresh token in the response to a refresh. "" issues a new token, and revokes the whole family
	// if a used token is sent again. "same" sends the same token again. "omit" sends none, and the old token stays
	// valid.
	Rotation string
	// Grace is how long a used refresh token is still accepted.
	Grace time.Duration
	// NoRefresh issues no refresh tokens; Offline issues them only if offline_access was requested.
	NoRefresh, Offline bool
	// RefreshLife is how long a refresh token is valid; 0 means forever.
	RefreshLife time.Duration
	// Error is the error code with which all token requests are refused; "" means that they are handled. Errors200
	// sends errors with the status 200.
	Error     string
	Errors200 bool
	// Form sends form-encoded responses. NoType omits token_type. Type replaces the value of token_type.
	Form, NoType bool
	Type         string
	// Scope is granted instead of the requested scopes. NoScope omits the granted scopes from the response.
	Scope   string
	NoScope bool
	// Audience is the audience of every token, in place of the requested resource. AudienceList sends the audience as a
	// list.
	Audience     string
	AudienceList bool
	// Opaque issues access tokens that are not JWTs. Alg is the signature algorithm: ES256 (the default) or RS256.
	Opaque bool
	Alg    string
	// Introspection replaces members of introspection responses; nil removes a member.
	Introspection map[string]any
}

// Device sets how the device authorization grant behaves.
type Device struct {
	// Absent turns the grant off.
	Absent bool
	// Interval is the number of seconds between token requests; 0 means 1. If Interval is negative, the response has no
	// interval.
	Interval int
	// The first SlowDowns token requests of a device are refused with slow_down. The next Pendings requests are refused
	// with authorization_pending.
	SlowDowns, Pendings int
	// Auto approves each device without a person. Deny refuses each device.
	Auto, Deny bool
	// Life is how long the codes are valid; 0 means ten minutes.
	Life time.Duration
	// NoComplete omits verification_uri_complete.
	NoComplete bool
}

// Server sets how the MCP server behaves.
type Server struct {
	// Legacy makes the MCP server use the stateful protocol versions instead of the stateless one.
	Legacy bool
	// Scope is the scope that each request requires; "" means "mcp". SecretScope is the additional scope that
	// secret_tool requires; "" means "secret".
	Scope, SecretScope string
	// OpenUntilCall requires a token only for tools/call; all other methods then need no token.
	OpenUntilCall bool
	// NeverEnough refuses secret_tool with insufficient_scope, whatever scopes the token has.
	NeverEnough bool
	// AnyAudience accepts tokens for other resources. AnyToken accepts any bearer token.
	AnyAudience, AnyToken bool
}
