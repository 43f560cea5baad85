// Package drawbridge is the system in an hour: its nouns, and nothing that does work.
//
// Drawbridge mounts Model Context Protocol (MCP) servers, records what they offer, and serves all of it as one MCP
// server. The words of this package are used by every other one:
//
//   - a [Card] is one callable capability; its [Spec] says what it is, Run calls it;
//   - a [Call] is one request on its way to a card, made by a [Caller], whose half of the conversation is a [Peer];
//   - a [Result] is what came back, as bytes; a [Fault] is why nothing did;
//   - a [Secret] is a text that shows itself to nobody by accident;
//   - a [Verdict] is what a guard says of a call; its zero value denies;
//   - a [Listing] is what one server offers; a [Status] is how one server is.
//
// Payloads travel as [json.RawMessage]: what nobody changes is not re-marshalled, so unknown members, big integers and
// odd encodings arrive as they were sent.
//
// The package imports the standard library only, starts nothing and keeps no state. To embed the whole system, see
// package gateway.
package drawbridge
