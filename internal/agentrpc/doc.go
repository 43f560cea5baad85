// Package agentrpc lets another program hold sessions of the agent over standard input and output. It speaks two
// protocols, both JSON-RPC 2.0 with one object a line: the Agent Client Protocol of editors ([ServeACP]), and the link
// ([ServeLink]), a smaller protocol for one session.
//
// The package opens no session itself: a [Host] does. It trusts no input: a line that is too long or is not a request is
// answered with an error, and the next line is read. When the client or the context ends, all runs are cancelled, all
// sessions are closed, and then Serve returns. ServeLink first completes the requests that were read.
package agentrpc
