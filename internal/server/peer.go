package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A sender carries messages to a caller before the response to a request.
type sender interface {
	// send sends a message. With must it waits for a slow reader; otherwise the message may be dropped. The error means
	// that the caller is gone or can only get the response.
	send(message []byte, must bool) error
	// done is closed when the caller is gone; nil if that is unknown or the caller may come back.
	done() <-chan struct{}
}

// A requestPeer is the caller's half of one request.
type requestPeer struct {
	sender sender
	// session is nil for a stateless caller, which cannot be asked. level is the least severe log level that such a
	// caller requests; empty requests no log lines.
	session *session
	level   string
}

var _ drawbridge.Peer = (*requestPeer)(nil)

// Notify sends a notification to the caller. Log lines below the caller's level are left out.
func (p *requestPeer) Notify(_ context.Context, method string, params json.RawMessage) error {
	if method == mcp.NoteMessage && !p.wantsLog(params) {
		return nil
	}
	return p.sender.send(mcp.Message{Method: method, Params: params}.Append(nil), false)
}

func (p *requestPeer) wantsLog(params json.RawMessage) bool {
	if p.session != nil {
		return p.session.watcher.wantsLog(params)
	}
	return p.level != "" && levelAdmits(p.level, params)
}

// Request sends a request to the caller, if the caller declared the capability for it.
func (p *requestPeer) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if p.session == nil || !canAsk(p.session.caller.Capabilities, method, params) {
		return nil, cannotAskFault(method)
	}
	select {
	case <-p.sender.done():
		// The request is over or its client hung up: the session's own stream remains.
		return p.session.ask(ctx, p.session.watcher, method, params)
	default:
		return p.session.ask(ctx, p.sender, method, params)
	}
}

var _ drawbridge.ReconnectRequester = (*requestPeer)(nil)

// RequestReconnect asks the caller to reconnect later for the rest, if its protocol allows. It is for servers that
// asked us for the same. The server never does so by itself, since a broken connection can be resumed anyway.
func (p *requestPeer) RequestReconnect(after time.Duration) {
	type poller interface{ poll(after time.Duration) }
	if v, ok := p.sender.(poller); ok {
		v.poll(min(max(after, time.Millisecond), maxPollDelay))
	}
}

// maxPollDelay is the most that a server can have a client stay away.
const maxPollDelay = time.Minute

func cannotAskFault(method string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound,
		Step: "ask the caller", Err: fmt.Errorf("it did not declare that it answers %s", truncate(method)),
	}
}

// canAsk reports whether a client with these capabilities may be sent the request. Every client may be sent a ping.
// Extensions were checked where the request came from.
func canAsk(capabilities json.RawMessage, method string, params json.RawMessage) bool {
	return method == mcp.MethodPing || mcp.ServerMayRequest(capabilities, capabilities, method, params)
}
