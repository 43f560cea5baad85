// Package interop translates calls between callers and servers of different protocol generations. It converts the
// requests that a server sends during a call to the form of the caller's generation. It also replaces the members of
// "_meta" that apply only to one connection; it leaves the rest of params and results unchanged.
//
// If a stateless server needs input for a stateful caller's call, [CallInRounds] sends the server's questions to the
// caller as requests, while the call waits. If a stateful server sends a request during a stateless caller's call, the
// caller gets a result that asks for input. It then sends the answers and a handle in a new request, while the call
// continues at the server ([ParkedCalls]).
//
// Every call ends with its result, when its caller or its server is gone, or at its time limit. A handle is valid once,
// for one principal and one server. Callers receive only questions that their declared capabilities cover; a stateless
// caller declares its capabilities with each request. At most 32 questions of one call are open at once. Notifications
// are delivered in order. The number of notifications that wait for the next request is limited, and further
// notifications are dropped.
package interop
