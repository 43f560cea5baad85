// Package interop tests Drawbridge against programs that other people wrote: the official conformance suite, from both
// sides; the Inspector, with MCP Apps samples; npm's reference servers, every tool of one of them; both TypeScript
// SDKs, which tell one story (clients) against one URL; mark3labs/mcp-go as client and server; and the official Go
// SDK, as client and as conformance server and client. Between them they meet in all four pairs of protocol
// generations. Vectors are kept in PGlite, a Postgres with the real pgvector. Language models are those of aimock, which
// speaks the four APIs.
//
// The tests have the build tag "peers", since they need what "make peers/node_modules" installs. They reach nothing but
// loopback, take no fixed ports, and leave no process behind. Some of the programs are this test binary itself: see
// role.
package interop
