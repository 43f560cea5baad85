// Package oauthtest is the identity provider that the tests sign in with: an OAuth 2.1 authorization server and,
// behind its tokens, an MCP server, both on loopback, with real keys and real HTTP.
//
// With zero Options it does what the specifications ask and insists that its client does too: PKCE with S256, the
// resource in each request, exact redirect URIs, refresh tokens that are good once. Knobs make it odd, old, broken or
// hostile, one by one, before it starts or while it runs:
//
//	p := idp.New(t, idp.Options{})
//	p.Turn(func(k *idp.Knobs) { k.Tokens.ExpiresIn = idp.ExpiresAbsent })
//	err := p.Visit(ctx, authorizationURL) // as a browser would, up to the loopback callback
//	if got := p.Counts().Refreshes; got != 1 { … }
//
// Everything it was asked is recorded (Requests), and Hold stops a request at a moment that a test must hit. Main is
// the same as a command, for scripts.
//
// In strings of the knobs, {issuer} and {resource} stand for the provider's own URLs, {origin} for the resource's
// origin. It is for tests only: what it decides it decides by hand, with no library that the program itself trusts, so
// that both cannot be wrong in the same way.
package oauthtest
