package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A sender sends messages to a caller before the response to a request.
type sender interface {
	// send sends a message. If must is set, it waits for a slow reader; otherwise the message may be dropped. An error
	// means that the caller has disconnected, or can receive only the response.
	send(message []byte, must bool) error
	// done returns a channel that is closed when the caller has disconnected. It returns nil if a disconnect cannot be
	// detected, or if the caller may reconnect.
	done() <-chan struct{}
}

// A requestPeer is the drawbridge.Peer of one request: it sends messages to the client that made the request.
type requestPeer struct {
	sender sender
	// session is the caller's session; nil for a stateless caller, which cannot receive requests. level is the minimum
	// log level that a stateless caller requests; empty means no log messages.
	session *session
	level   string
}

var _ drawbridge.Peer = (*requestPeer)(nil)

// Notify sends a notification to the caller. Log messages below the caller's level are not sent.
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
		// The request has ended or its client has disconnected, so the session's own stream is used.
		return p.session.ask(ctx, p.session.watcher, method, params)
	default:
		return p.session.ask(ctx, p.sender, method, params)
	}
}

var _ drawbridge.ReconnectRequester = (*requestPeer)(nil)

// RequestReconnect asks the caller to disconnect and to reconnect after a delay, if its protocol allows that. It is
// called when the called server asks Drawbridge for the same. Drawbridge never asks for it on its own, because a client
// can resume a broken connection anyway.
func (p *requestPeer) RequestReconnect(after time.Duration) {
	type poller interface{ poll(after time.Duration) }
	if v, ok := p.sender.(poller); ok {
		v.poll(min(max(after, time.Millisecond), maxPollDelay))
	}
}

// maxPollDelay is the maximum time for which a called server can ask a client to stay disconnected.
const maxPollDelay = time.Minute

func cannotAskFault(method string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound,
		Step: "ask the caller", Err: fmt.Errorf("it did not declare that it answers %s", truncate(method)),
	}
}

// canAsk reports whether this server may send the request to a client with these capabilities. A ping may be sent to
// every client. Requests of extensions are allowed here, because they were checked before.
func canAsk(capabilities json.RawMessage, method string, params json.RawMessage) bool {
	return method == mcp.MethodPing || mcp.ServerMayRequest(capabilities, capabilities, method, params)
}
