// Package drawbridge defines the basic types of the system, which every other package uses. Start reading here.
//
// Drawbridge mounts Model Context Protocol (MCP) servers, stores the list of tools that they offer, and serves all of
// them as one MCP server. The types are:
//
//   - a [Card] is one callable tool: its [Spec] describes it, and Run calls it;
//   - a [Call] is one request for a card; its [Caller] identifies the sender, and its [Peer] sends messages to the
//     client;
//   - a [Result] is the result object as bytes; a [Fault] explains why a call has no result;
//   - a [Secret] is a text that is printed and logged as "[redacted]";
//   - a [Verdict] is a guard's decision on a call; [Rules] are the user's rules for decisions; the zero value of both
//     denies every call;
//   - a [Listing] is everything one server offers; a [ServerStatus] is the current status of one server;
//   - a [SignInManager] signs one principal in to one server.
//
// Payloads travel as [json.RawMessage]. A payload that Drawbridge does not change is not marshalled again, so unknown
// members, big integers and unusual encodings arrive as they were sent.
//
// The package imports only the standard library, starts no goroutine or process, and has no global state. To embed the
// whole system, see package gateway.
package drawbridge
