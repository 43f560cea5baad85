// Package mcp is MCP as bytes: JSON-RPC envelopes whose params, result and error stay as they were sent, edits by path
// that leave everything else alone, the framings (lines, server-sent events) with their bounds, the HTTP headers that
// mirror a body, and the protocol's names.
//
// It promises that what nobody edits is not re-marshalled: unknown members, the order of members, big integers, escapes
// and white space survive. It refuses what is not JSON, is no UTF-8 or nests deeper than MaxDepth, so that nothing
// behind it has to. It holds no connection, starts no goroutine and reads no more than the bounds it is given.
package mcp
