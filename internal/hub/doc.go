// Package hub lets all clients of one user share one set of servers. One process per user and store, the hub, runs the
// servers; every other "serve" is a shim that attaches its client to the hub.
//
// The first process becomes the hub: it holds a lock beside the store and listens on a Unix socket that only its own
// user can open. The package guarantees that two hubs never run on one store. A client keeps its session when the hub
// dies: one of the shims becomes the next hub, and every shim repeats its client's session and the requests that are
// safe to repeat. A call whose outcome is unknown is answered with an ambiguous error.
//
// Clients do not see each other: each has its own session and only the servers of its own configuration. A shim sends
// the places of its configuration and its environment; the hub reads the files. Identical rows of several
// configurations become one server.
//
// A hub without clients ends. While others are attached, it outlives its own client. docs/hub.md describes the control
// protocol.
package hub
