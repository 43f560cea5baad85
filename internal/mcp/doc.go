// Package mcp reads and writes MCP messages as bytes. It contains JSON-RPC envelopes, whose params, result and error
// are kept unchanged. It contains the message framings (lines, server-sent events) with their size limits. It contains
// the HTTP headers that repeat parts of a body, and the names that the protocol defines.
//
// A message is not parsed and encoded again as a whole. Unknown members, the order of members, large integers, escapes
// and white space stay unchanged, except in the members that Drawbridge edits. The package refuses invalid JSON,
// invalid UTF-8 and nesting deeper than MaxDepth, so that no other package must check for them. The package opens no
// connection, starts no goroutine, and reads no more than its size limits.
package mcp
