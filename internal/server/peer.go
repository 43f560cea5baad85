package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A sender is where a caller hears what is said before the answer to a request.
type sender interface {
	// send sends a message. What must arrive waits for a slow reader, what need not may be dropped. The error means
	// that the caller is gone, or cannot be told anything but the answer.
	send(message []byte, must bool) error
	// done is closed when the caller is; nil where nobody can know, or they may come back.
	done() <-chan struct{}
}

// A requestPeer is the caller's half of one request.
type requestPeer struct {
	sender sender
	// session is nil for a stateless caller, who cannot be asked; level is the least severe log line such a caller
	// wants, none where it is empty.
	session *session
	level   string
}

var _ drawbridge.Peer = (*requestPeer)(nil)

// Notify says something to the caller. Log lines that they did not ask for are left out.
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

// Request asks the caller, if they said that they can be asked.
func (p *requestPeer) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if p.session == nil || !canAsk(p.session.caller.Capabilities, method, params) {
		return nil, cannotAskFault(method)
	}
	select {
	case <-p.sender.done():
		// The request is over, or its client hung up: the session's own stream is what is left.
		return p.session.ask(ctx, p.session.watcher, method, params)
	default:
		return p.session.ask(ctx, p.sender, method, params)
	}
}

var _ drawbridge.ReconnectRequester = (*requestPeer)(nil)

// RequestReconnect has the caller come back later for what is still to come, if they can be told to. It is for bridges
// whose server has just told them that: we never do by ourselves, since what cuts a connection is survived by coming
// back anyway.
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

// canAsk says whether a client with these capabilities may be sent the request. Anybody may be sent a ping; whether a
// server has the client's extensions was asked where the request came from.
func canAsk(capabilities json.RawMessage, method string, params json.RawMessage) bool {
	return method == mcp.MethodPing || mcp.ServerMayRequest(capabilities, capabilities, method, params)
}
