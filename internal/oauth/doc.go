// Package oauth signs in at MCP servers that require OAuth, and stores the tokens.
//
// A person is asked to sign in only where Drawbridge cannot get a token without a person. A token is renewed before it
// expires, by one of the processes that use it. If the server refuses the token of a process, the process first uses
// the token that another process has obtained meanwhile. The package does not open a browser. If a person must sign in,
// it returns the address of the sign-in page, which the caller shows to the person. Credentials are stored in the given
// vault, one name per credential, and are sent only to the server that they were issued for. Errors and log lines
// contain no token, code, verifier or client secret.
//
// The package follows these rules of the MCP authorization specification (2025-11-25 and 2026-07-28):
//   - protected resource metadata
//   - authorization server metadata whose issuer equals the requested issuer
//   - PKCE with S256
//   - resource indicators
//   - a client that is preconfigured, described by a document or registered
//   - a comparison of the issuer in the authorization response with the expected issuer
//
// Some older servers have no such metadata. For these servers, the package then tries other places where endpoints were
// published (discover_nonstandard.go).
//
// A client with a private key in place of a secret authenticates with a signed assertion for one issuer
// (client_assertion.go). Each assertion has its own ID and is valid for a minute. No error contains any part of the
// key.
package oauth
