// Package interop translates calls between callers and servers of different protocol eras: server requests during a
// call reach the caller in a form that its era has. It also edits the members of "_meta" that belong to one hop;
// nothing else of params and results changes.
//
// A stateful caller is asked by requests while its call waits, however often a stateless server answers that it needs
// input ([CallInRounds]). A stateless caller gets a result that asks for input and comes back with answers and a
// handle, while the call goes on at the stateful server ([ParkedCalls]).
//
// Every call ends: with its result, its caller, its server, or its time limit. A handle is valid once, for one
// principal and one server. Callers are asked only within the capabilities that they declared; a stateless caller
// declares them with each request. At most 32 questions of one call are open at once. Notifications reach the requests
// in order; those that wait for the next request are bounded, and later ones are dropped.
package interop
