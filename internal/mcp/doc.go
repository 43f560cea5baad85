// Package mcp reads and writes MCP messages as bytes. It contains JSON-RPC envelopes, whose params, result and error
// are kept unchanged. It contains the message framings (lines, server-sent events) with their size limits. It contains
// the HTTP headers that repeat parts of a body, and the names that the protocol defines.
//
// Unedited parts of a message are never re-encoded: unknown members, the order of members, large integers, escapes and
// white space stay unchanged. The package refuses invalid JSON, invalid UTF-8 and nesting deeper than MaxDepth, so that
// no other package must check for them. The package opens no connection, starts no goroutine, and reads no more than
// its size limits.
package mcp
