// Package interop translates calls between callers and servers of different protocol generations. It converts the
// requests that a server sends during a call to the form of the caller's generation. It also replaces the members of
// "_meta" that apply only to one connection. It leaves the rest of params and results unchanged.
//
// A stateless server may need input during the call of a stateful caller. Then [CallInRounds] sends the server's
// questions to the caller as requests, while the call waits. If a stateful server sends a request during the call of a
// stateless caller, the caller gets a result that asks for input. The caller then sends the answers in a new request,
// with the handle from the result. Meanwhile the call continues at the server (see [ParkedCalls]).
//
// Every call ends: with a result, when its caller or its server is gone, or at its time limit. A handle can be used
// once, and only for the same principal and server. Callers receive only questions that their declared capabilities
// cover; a stateless caller declares its capabilities with each request. At most 32 questions of one call are
// unanswered at the same time.
//
// Notifications are delivered in the order in which the server sent them. Between two requests of a stateless caller,
// they are queued for the next request. When the queue is full, further notifications are dropped.
package interop
