// Package transport is one connection to one server, as bytes: requests go out, their responses come back, and what the
// server says on its own reaches a Handler.
//
// It promises that every request ends: with a response, with the context, or with the connection. It knows JSON-RPC and
// the few MCP rules that belong to a connection (progress tokens, cancellation); eras, handshakes and names are the
// business of package bridge.
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

// ErrLost is wrapped by the error of a request that was sent and whose connection ended before it was answered: what
// came of it is not known.
var ErrLost = errors.New("connection lost before the answer")

// A Conn is one live connection to a server. Its methods may be called from several goroutines.
type Conn interface {
	// Call sends a request and waits for its response. What the server says that belongs to this request goes to in
	// while Do waits; a nil in leaves it to the connection's own Handler. The response has Result or Error. When ctx
	// ends, the server is told (a cancelled notification, or the end of the HTTP exchange) and Do returns the
	// context's error at once. The error wraps ErrClosed where nothing was sent and ErrLost where the outcome is
	// unknown.
	Call(ctx context.Context, method string, params json.RawMessage, in Handler) (mcp.Message, error)

	// Notify sends a notification.
	Notify(ctx context.Context, method string, params json.RawMessage) error

	// Done is closed when the connection has ended, however that came; Err then says why (nil after Close).
	Done() <-chan struct{}
	Err() error

	// Close ends the connection and waits for its goroutines, no longer than ctx allows.
	Close(ctx context.Context) error
}

// A Handler receives what a server says on its own. A connection calls Notify in the order of arrival, from its reading
// goroutine: it must not wait for the same connection. It calls Ask from a goroutine of its own for each request.
type Handler interface {
	// HandleNotification takes a notification.
	HandleNotification(method string, params json.RawMessage)

	// HandleRequest answers a request of the server: with a result object, or with a JSON-RPC error object. Exactly
	// one is not nil. ctx ends when the server cancels its request or the connection ends.
	HandleRequest(ctx context.Context, method string, params json.RawMessage) (result, errorObject json.RawMessage)
}

// A ReconnectListener is a Handler that hears when a server has ended the stream of its request in the middle, and
// asked to come back after that time for the rest. The connection does that by itself.
type ReconnectListener interface {
	OnReconnectRequest(after time.Duration)
}
