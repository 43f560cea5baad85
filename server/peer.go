package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/server/claim"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A voice is where a caller hears what is said before the answer to a request.
type voice interface {
	// say sends a message. What must arrive waits for a slow reader, what need not may be dropped. The error means that
	// the caller is gone, or cannot be told anything but the answer.
	say(message []byte, must bool) error
	// gone is closed when the caller is; nil where nobody can know, or they may come back.
	gone() <-chan struct{}
}

// A peer is the caller's half of one request.
type peer struct {
	voice voice
	// session is nil for a stateless caller, who cannot be asked; level is the least severe log line such a caller wants,
	// none where it is empty.
	session *session
	level   string
}

var _ drawbridge.Peer = (*peer)(nil)

// Notify says something to the caller. Log lines that they did not ask for are left out.
func (p *peer) Notify(_ context.Context, method string, params json.RawMessage) error {
	if method == wire.NoteMessage && !p.wantsLog(params) {
		return nil
	}
	return p.voice.say(wire.Message{Method: method, Params: params}.Append(nil), false)
}

func (p *peer) wantsLog(params json.RawMessage) bool {
	if p.session != nil {
		return p.session.watcher.logs(params)
	}
	return p.level != "" && claim.Hears(p.level, params)
}

// Ask asks the caller, if they said that they can be asked.
func (p *peer) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if p.session == nil || !askable(p.session.caller.Capabilities, method, params) {
		return nil, unaskable(method)
	}
	select {
	case <-p.voice.gone():
		// The request is over, or its client hung up: the session's own stream is what is left.
		return p.session.ask(ctx, p.session.watcher, method, params)
	default:
		return p.session.ask(ctx, p.voice, method, params)
	}
}

var _ drawbridge.Poller = (*peer)(nil)

// Poll has the caller come back later for what is still to come, if they can be told to. It is for bridges whose server
// has just told them that: we never do by ourselves, since what cuts a connection is survived by coming back anyway.
func (p *peer) Poll(after time.Duration) {
	type poller interface{ poll(after time.Duration) }
	if v, ok := p.voice.(poller); ok {
		v.poll(min(max(after, time.Millisecond), longestPoll))
	}
}

// longestPoll is the most that a server can have a client stay away.
const longestPoll = time.Minute

func unaskable(method string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound,
		Step: "ask the caller", Err: fmt.Errorf("it did not declare that it answers %s", clip(method)),
	}
}

// askable says whether a client with these capabilities may be sent the request. Anybody may be sent a ping; whether a
// server has the client's extensions was asked where the request came from.
func askable(capabilities json.RawMessage, method string, params json.RawMessage) bool {
	return method == wire.MethodPing || wire.MayAskBy(capabilities, capabilities, method, params)
}
