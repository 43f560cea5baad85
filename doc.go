// Package drawbridge holds the nouns of the system: the types that every other package uses. It is the place to start
// reading.
//
// Drawbridge mounts Model Context Protocol (MCP) servers, records the tools they offer and serves all of them as one
// MCP server. The nouns are:
//
//   - a [Card] is one callable tool: its [Spec] describes it, and Run calls it;
//   - a [Call] is one request for a card; its [Caller] is who sent it, and its [Peer] reaches the caller's client;
//   - a [Result] is the result object as bytes; a [Fault] is the reason for a missing result;
//   - a [Secret] is a text that is never printed by accident;
//   - a [Verdict] is a guard's decision on a call, and [Rules] lead to one; the zero value of both denies;
//   - a [Listing] is everything one server offers; a [ServerStatus] is the present condition of one server;
//   - a [SignInManager] signs one principal in at one server.
//
// Payloads travel as [json.RawMessage]. A payload that Drawbridge does not change is not marshalled again, so unknown
// members, big integers and unusual encodings arrive as they were sent.
//
// The package imports the standard library only, starts nothing and keeps no state. To embed the whole system, see
// package gateway.
package drawbridge
