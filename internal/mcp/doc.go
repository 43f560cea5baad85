// Package mcp reads and writes MCP messages as bytes. It has JSON-RPC envelopes with params, result and error as they
// were sent, edits by path, the framings (lines, server-sent events) with their bounds, the HTTP headers that mirror a
// body, and the names of the protocol.
//
// Unedited parts of a message are never re-marshalled: unknown members, the order of members, big integers, escapes and
// white space stay as they are. Invalid JSON, invalid UTF-8 and nesting deeper than MaxDepth are refused here, so that
// no other package has to check. The package holds no connection, starts no goroutine, and reads no more than its
// bounds.
package mcp
