// Package oauth signs in at MCP servers that want OAuth, and keeps what came of it.
//
// It promises that a person is asked only where nobody else can help: a token is renewed before it expires, by one
// process of all that use it, and what a server refuses is tried again with what another process has got meanwhile. It
// promises that no browser opens here: a sign-in that is needed is an address, for whoever shows it. What is kept is
// in the vault it is given, under one name a credential, and is handed to that server alone that it was made for. No
// token, code, verifier or client's secret is in an error or a log line.
//
// The rules are those of the MCP authorization specification (2025-11-25 and 2026-07-28): metadata of the protected
// resource, metadata of the authorization server whose issuer must be the one that was asked for, PKCE with S256,
// resource indicators, a client that is known, described by a document or registered, and an issuer in the answer that
// is compared. Older servers say less; what they say in other places is looked for after that (odd.go).
package oauth
