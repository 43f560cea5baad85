package oauthtest

import (
	"encoding/json"
	"time"
)

// Options are what cannot change while a provider runs. The zero Options are an honest provider.
type Options struct {
	// Knobs are what it begins with; Turn changes them.
	Knobs Knobs
	// IssuerPath is the path of the issuer, such as "/tenant"; "" is none.
	IssuerPath string
	// ResourcePath is the path of the MCP server; "" is "/mcp".
	ResourcePath string
	// IssuerHost and ResourceHost are how URLs name the host: "127.0.0.1" where they are "", or "localhost".
	IssuerHost, ResourceHost string
	// OneOrigin has the MCP server on the authorization server's origin.
	OneOrigin bool
	// TLS has both on https, with a certificate that Provider.HTTP trusts.
	TLS bool
	// Clients are registered beforehand.
	Clients []Client
	// Documents are client ID metadata documents by URL, taken as if they had been fetched from there.
	Documents map[string]json.RawMessage
	// Resources are further resources that tokens are issued for.
	Resources []string
}

// A Client is one that the provider knows.
type Client struct {
	ID, Secret string
	// Method is how it authenticates: none, client_secret_basic or client_secret_post. "" is none without a Secret, and
	// either of the others with one.
	Method string
	// Redirects are its redirect URIs. Of one that leads to the loopback the port is free, unless
	// Authorization.ExactPort.
	Redirects []string
	// Name is shown on the consent page.
	Name string
	// Grants are the grant types it may use; nil is all.
	Grants []string
	// SecretExpires is when the Secret expires; zero means never.
	SecretExpires time.Time
}

// Knobs are how a provider misbehaves. The zero Knobs are a provider that does not.
type Knobs struct {
	Discovery     Discovery
	Challenge     Challenge
	Registration  Registration
	Authorization Authorization
	Tokens        Tokens
	Device        Device
	Server        Server
	// Faults are what happens at an endpoint instead of, before or after what should. Those of one grant stand under
	// "token/refresh_token" and the like, and come first.
	Faults map[Endpoint]Fault
	// Skew is how far the provider's clock is ahead; below zero it is behind.
	Skew time.Duration
	// User is who signs in; "" is "ada".
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
	// Nothing is a path where the provider has nothing.
	Nothing Endpoint = "nothing"
)

// A Fault is what happens to requests of an endpoint. A Fault of Slow alone delays them.
type Fault struct {
	// Times is how many requests it happens to; 0 is all.
	Times int
	// After has the request do its work first: only the answer is lost, or replaced.
	After bool
	// Slow is how long the answer takes.
	Slow time.Duration
	// Status, Type, Body and Header are the answer. A Status of 0 is the endpoint's own answer.
	Status     int
	Type, Body string
	Header     map[string]string
	// Drop cuts the connection instead of an answer.
	Drop bool
}

// A MetadataPlace is where metadata stands.
type MetadataPlace string

// The places of metadata. The path of an issuer or resource is inserted behind the well-known part, or, for one form of
// OpenID Connect, has it appended. The Odd places have what an authorization server's metadata has.
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
	OddAuthorize MetadataPlace = "odd-auth"  // /authorize, where it is asked without a query
)

// Discovery is what the provider says about itself.
type Discovery struct {
	// Places have metadata; nil is PRMPath and ASPath. An empty list is none at all.
	Places []MetadataPlace
	// OnResource has the authorization server's metadata on the resource's origin too.
	OnResource bool
	// Issuer and Resource are what metadata says they are, AuthorizationServers where the resource sends its clients;
	// empty is the truth.
	Issuer, Resource     string
	AuthorizationServers []string
	// Set and SetPRM put members into the metadata of the authorization server and of the resource; nil takes one away.
	Set, SetPRM map[string]any
	// Padding is how many bytes of nothing there are in each document.
	Padding int
	// Redirect is where requests for metadata are sent instead.
	Redirect string
}

// A ChallengeForm is how a 401 says where to sign in.
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

// Challenge is the answer to a request without a good token.
type Challenge struct {
	Form ChallengeForm
	// Status is 401 where it is 0.
	Status int
	// Scope is the challenge's scope parameter; "" is the server's Scope, "-" none.
	Scope string
	// Under is the member of the body that has the endpoints: oauth, authorization, auth, or "" for the top level.
	Under string
	// AuthorizationKey and TokenKey name the endpoints in the pairs or the body; "" is authorization_endpoint and
	// token_endpoint. ClientIDKey and ScopesKey name a client ID (ClientID) and the scopes in the body; "" is neither.
	AuthorizationKey, TokenKey, ClientIDKey, ScopesKey string
	ClientID                                           string
	// ScopeList has the scopes in the body as a list.
	ScopeList bool
	// InQuery has ClientID and the scopes in the query of the authorization URL.
	InQuery bool
}

// Registration is how clients become known.
type Registration struct {
	// Absent turns dynamic registration off.
	Absent bool
	// InitialToken is the token that registration requires; "" means none.
	InitialToken string
	// Secret issues a secret to every client, valid for SecretLife (0 means for ever).
	Secret     bool
	SecretLife time.Duration
	// RejectRedirects are texts that no redirect URI may contain.
	RejectRedirects []string
	// Documents has client IDs that are URLs of metadata documents supported.
	Documents bool
	// Methods are the token_endpoint_auth_methods_supported; nil is none, client_secret_basic and client_secret_post.
	Methods []string
}

// Authorization is how the authorization endpoint behaves.
type Authorization struct {
	// PKCE: "" demands S256 and says so; "unadvertised" says nothing and checks what it gets; "plain" has plain only;
	// "optional" says S256 and takes requests without.
	PKCE string
	// Iss is the issuer in the answer: "" is the right one, "-" none, else that. IssUnadvertised does not tell of it.
	Iss             string
	IssUnadvertised bool
	// State is the state in the answer: "" is the right one, "-" none, else that.
	State string
	// Error is the code of an error to answer with, such as access_denied.
	Error string
	// ExactPort compares the port of loopback redirect URIs too; LoopbackNames takes localhost for 127.0.0.1.
	ExactPort, LoopbackNames bool
	// Indicator is what is thought of the resource parameter: "" demands it in each request, "ignore", or "reject".
	Indicator string
	// Consent shows a page with a button.
	Consent bool
	// Forward sends the browser on to another provider's endpoint with the same query, as ForwardClient where it is
	// set.
	Forward, ForwardClient string
	// CodeLife is how long a code is good; 0 is a minute.
	CodeLife time.Duration
}

// The forms of expires_in that are not a number.
const (
	ExpiresAbsent = "absent" // no member
	ExpiresText   = "text"   // the number as a string
	ExpiresFloat  = "float"  // 3600.0
)

// Tokens is how the token endpoint behaves.
type Tokens struct {
	// Life is how long an access token is good; 0 is an hour.
	Life time.Duration
	// ExpiresIn is the form of expires_in: "" is a number, else ExpiresAbsent, ExpiresText, ExpiresFloat, or the JSON
	// value itself.
	ExpiresIn string
	// Rotation: "" issues a new refresh token at each refresh and revokes all when a used one is sent again; "same"
	// issues the same again; "omit" issues none, and the old one stays valid.
	Rotation string
	// Grace is how long a spent refresh token is still taken.
	Grace time.Duration
	// NoRefresh issues no refresh tokens; Offline issues them only if offline_access was requested.
	NoRefresh, Offline bool
	// RefreshLife is how long a refresh token is good; 0 is for ever.
	RefreshLife time.Duration
	// Error is refused with, in place of every token; Errors200 has errors come with the status 200.
	Error     string
	Errors200 bool
	// Form answers form-encoded; NoType leaves token_type out; Type is another one.
	Form, NoType bool
	Type         string
	// Scope is granted whatever was asked for; NoScope does not say what was granted.
	Scope   string
	NoScope bool
	// Audience is the audience of every token, in place of the resource that was asked for; AudienceList has it as a
	// list.
	Audience     string
	AudienceList bool
	// Opaque has access tokens that say nothing; Alg is ES256 where it is "", or RS256.
	Opaque bool
	Alg    string
	// Introspection puts members into what introspection says; nil takes one away.
	Introspection map[string]any
}

// Device is the device authorization grant.
type Device struct {
	// Absent has none.
	Absent bool
	// Interval is how many seconds apart the client may ask; 0 is 1, below zero it is not said.
	Interval int
	// SlowDowns and Pendings are how many questions are answered with slow_down and then authorization_pending.
	SlowDowns, Pendings int
	// Auto approves without a person; Deny refuses.
	Auto, Deny bool
	// Life is how long the codes are good; 0 is ten minutes.
	Life time.Duration
	// NoComplete leaves out verification_uri_complete.
	NoComplete bool
}

// Server is how the MCP server behaves.
type Server struct {
	// Legacy has it speak the stateful generation instead of the stateless one.
	Legacy bool
	// Scope is what each request needs; "" is "mcp". SecretScope is what secret_tool needs; "" is "secret".
	Scope, SecretScope string
	// OpenUntilCall needs a token for tools/call only.
	OpenUntilCall bool
	// NeverEnough answers secret_tool with insufficient_scope whatever the token has.
	NeverEnough bool
	// AnyAudience takes tokens for other resources; AnyToken takes any bearer token.
	AnyAudience, AnyToken bool
}
