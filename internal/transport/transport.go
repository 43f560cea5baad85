// Package transport connects to one server over pipes or HTTP and exchanges JSON-RPC messages as bytes. Requests get
// their responses; messages that the server sends on its own reach a Handler.
//
// Every request ends: with a response, with its context, or with the connection. Nothing of a server is read without a
// bound. No header and no session id reaches another origin than the configured one, and no error repeats the URL. A
// small message is written to a pipe at once, whole or not at all, without another goroutine.
//
// The package knows JSON-RPC and the few MCP rules of a connection (progress tokens, cancellation, HTTP sessions).
// Handshakes, eras and retries of calls belong to package upstream.
package transport

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// ErrClosed is the error of a request that was never sent, because the connection was gone.
var ErrClosed = errors.New("connection closed")

// ErrLost is wrapped by the error of a request that was sent and whose connection ended before the answer: its outcome
// is unknown.
var ErrLost = errors.New("connection lost before the answer")

// A Conn is one live connection to a server. Its methods may be called from several goroutines.
type Conn interface {
	// Call sends a request and waits for its response, which has Result or Error. Messages that belong to this request
	// go to in while Call waits; a nil in leaves them to the connection's Handler. When ctx ends, the server is told (a
	// cancelled notification, or the end of the HTTP exchange) and Call returns the context's error at once. The error
	// wraps ErrClosed if nothing was sent and ErrLost if the outcome is unknown.
	Call(ctx context.Context, method string, params json.RawMessage, in Handler) (mcp.Message, error)

	// Notify sends a notification.
	Notify(ctx context.Context, method string, params json.RawMessage) error

	// Done is closed when the connection has ended; Err then returns why (nil after Close).
	Done() <-chan struct{}
	Err() error

	// Close ends the connection and waits for its goroutines, no longer than ctx allows.
	Close(ctx context.Context) error
}

// A Handler receives what a server sends on its own. A connection calls HandleNotification in the order of arrival,
// from its reading goroutine: it must not wait for the same connection. HandleRequest runs in a goroutine of its own.
type Handler interface {
	// HandleNotification handles a notification.
	HandleNotification(method string, params json.RawMessage)

	// HandleRequest answers a request of the server: with a result object, or with a JSON-RPC error object. Exactly
	// one is not nil. ctx ends when the server cancels its request or the connection ends.
	HandleRequest(ctx context.Context, method string, params json.RawMessage) (result, errorObject json.RawMessage)
}

// A ReconnectListener is a Handler that learns when a server ended the stream of its request early and asked to
// reconnect after that time. The connection reconnects by itself.
type ReconnectListener interface {
	OnReconnectRequest(after time.Duration)
}
