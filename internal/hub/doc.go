// Package hub has all clients of one person share one set of servers: one process per user and store holds the fleet,
// and every other "serve" is a shim that passes its client's messages to it.
//
// Who comes first is the hub: it holds a lock beside the store and listens on a Unix socket that only its own user may
// open. It promises that two hubs never run on one store; that a client keeps its session when the hub dies, whatever
// it dies of: one of the shims takes over, tells the new hub what the client had said, and asks again what may be
// asked twice. A call whose outcome nobody knows is answered as that. Nothing of one client reaches another: each has
// a session of its own, and sees the servers of its own configuration only. A shim hands over where it would have
// looked for configuration, and its environment; the hub reads, and runs the union, in which rows that say the same
// are one server.
//
// The hub ends with its own client when nobody else is attached. Where several remain it lives on for them.
package hub
