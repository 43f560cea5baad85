// Package hub lets all clients of one user share one set of servers. One process for each user and store, the hub, runs
// the servers. Every other process of "drawbridge serve" is a shim: it connects its client to the hub.
//
// The first process becomes the hub: it locks a file beside the store and listens on a Unix socket that only its user
// can open. Two hubs never run on the same store. A client keeps its session when the hub dies. One of the shims
// becomes the next hub, and every shim repeats its client's session setup and the requests that are safe to repeat. A
// call whose outcome is unknown gets an error that is marked as ambiguous.
//
// Clients do not see each other: each client has its own session, and sees only the servers of its own configuration. A
// shim sends the paths of its configuration and its environment to the hub, which reads the files. If several
// configurations contain the same row, the hub runs one server for all of them.
//
// A hub ends when it has no clients. If the client of the hub's own process ends before the clients of shims, the hub
// continues. docs/hub.md describes the control protocol between shims and the hub.
package hub
