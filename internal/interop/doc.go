// Package interop carries calls between callers and servers of different generations: what one of them asks in the
// midst of a call reaches the other in words that it has.
//
// A stateful caller is asked by requests while its call waits, however often a stateless server answers that it needs
// input ([InRounds]). A stateless caller gets a result that asks for input, and comes back with answers and a handle,
// while the call goes on at the stateful server ([Parking]).
//
// It promises that every call ends: with its result, with its caller, with its server, or with its time. A handle is
// good once, for one principal and one server. Nobody is asked for what they did not declare: a stateless caller
// declares with each request anew. Of one call no more than 32 questions are open at once. What the server says
// reaches the requests in the order it was said; what waits for the next of them is bounded, and what is too much for
// that is dropped.
package interop
