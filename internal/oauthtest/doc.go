// Package oauthtest is the identity provider for tests of sign-ins. It consists of an OAuth 2.1 authorization server
// and an MCP server that requires its tokens. Both listen on loopback and use real keys and real HTTP.
//
// With zero Options the provider follows the specifications. It also requires that its client follows them: PKCE with
// S256, the resource in each request, exact redirect URIs, and refresh tokens that are used only once. Knobs are
// settings. Each knob changes one behaviour to that of an unusual, old, broken or hostile provider. Knobs can be set
// before the provider starts and while it runs:
//
//	p := oauthtest.New(t, oauthtest.Options{})
//	p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Tokens.ExpiresIn = oauthtest.ExpiresAbsent })
//	err := p.AllowSignIn(ctx, authorizationURL) // like a browser, up to the loopback callback
//	if got := p.Counts().Refreshes; got != 1 { … }
//
// The provider records all requests to its endpoints (Requests). Hold blocks the requests to one endpoint until the
// test releases them. Main runs the provider as a command, for scripts.
//
// In strings of the knobs, {issuer} and {resource} are replaced by the provider's own URLs, and {origin} by the
// resource's origin. The package is for tests only. It does not use the libraries with which Drawbridge verifies
// tokens, so that both cannot have the same error.
package oauthtest
