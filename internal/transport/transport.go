// Package transport connects to one server over pipes or HTTP and exchanges JSON-RPC messages as bytes. It matches
// responses to requests, and passes all other messages of the server to a Handler.
//
// Every request ends: with a response, with its context, or with the connection. The size of all data that is read from
// a server is bounded. Headers and session IDs are sent only to the configured origin, and no error contains the URL. A
// small message is written to a pipe directly by its sender, as a whole or not at all.
//
// The package handles JSON-RPC and the few rules of MCP that concern a connection (progress tokens, cancellation, HTTP
// sessions). Package upstream handles the handshake, protocol eras and retries of calls.
package transport

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// ErrClosed is the error of a request that was not sent because the connection had ended or could not be opened.
var ErrClosed = errors.New("connection closed")

// ErrLost is wrapped by the error of a request that was sent but has no response because the connection was lost. It is
// unknown whether the server executed the request.
var ErrLost = errors.New("connection lost before the answer")

// A Conn is one live connection to a server. Its methods may be called from several goroutines.
type Conn interface {
	// Call sends a request and waits for its response, which has Result or Error. While Call waits, messages that
	// belong to the request are passed to in, or to the connection's Handler if in is nil. When ctx ends, Call cancels
	// the request at the server and returns the error of ctx at once. It cancels the request with a notification, or by
	// ending the HTTP exchange. The error wraps ErrClosed if the request was not sent. It wraps ErrLost if it is
	// unknown whether the server executed the request.
	Call(ctx context.Context, method string, params json.RawMessage, in Handler) (mcp.Message, error)

	// Notify sends a notification.
	Notify(ctx context.Context, method string, params json.RawMessage) error

	// Done returns a channel that is closed when the connection has ended. Err then returns the reason, which is nil
	// after Close.
	Done() <-chan struct{}
	Err() error

	// Close ends the connection and waits until its goroutines have ended, but not longer than until ctx ends.
	Close(ctx context.Context) error
}

// A Handler receives the notifications and requests that a server sends. A connection calls HandleNotification in the
// order of arrival from its reading goroutine. Therefore HandleNotification must not wait for messages on the same
// connection. HandleRequest runs in a separate goroutine.
type Handler interface {
	// HandleNotification handles a notification.
	HandleNotification(method string, params json.RawMessage)

	// HandleRequest answers a server request with a result object or with a JSON-RPC error object. Exactly one of the
	// results is not nil. ctx ends when the server cancels its request or the connection ends.
	HandleRequest(ctx context.Context, method string, params json.RawMessage) (result, errorObject json.RawMessage)
}

// A ReconnectListener is a Handler that is notified when a server ends the stream of a request early. The server
// thereby asks the client to reconnect after a pause. The connection reconnects by itself; the listener need not do
// anything.
type ReconnectListener interface {
	OnReconnectRequest(after time.Duration)
}
