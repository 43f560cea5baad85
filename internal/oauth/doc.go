// Package oauth signs in at MCP servers that require OAuth, and keeps the tokens.
//
// It promises that a person is asked only where Drawbridge cannot get a token alone. A token is renewed before it
// expires, by one of all the processes that use it. A process whose token is refused first uses the token that another
// process has obtained meanwhile. No browser is opened here: a sign-in that a person must complete is an address, which
// the caller shows. Credentials are stored in the given vault, one name per credential, and are sent only to the server
// that they were issued for. Errors and log lines contain no token, code, verifier or client secret.
//
// The rules are those of the MCP authorization specification (2025-11-25 and 2026-07-28): protected resource metadata;
// authorization server metadata whose issuer equals the requested one; PKCE with S256; resource indicators; a client
// that is preconfigured, described by a document or registered; and a comparison of the issuer in the authorization
// response. Older servers publish less; what they publish in other places is tried after that
// (discover_nonstandard.go).
//
// A client with a private key in place of a secret proves itself with a signed assertion for one issuer
// (client_assertion.go). An assertion has an ID of its own and is valid for a minute; no error contains any part of the
// key.
package oauth
