package server

import (
	"context"
	"net/http"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// serveGet opens the session's own stream. If the client names an event, serveGet resumes the stream of that event
// after it. Each stream has at most one connection: a new connection ends the earlier one.
func (d *httpHandler) serveGet(w http.ResponseWriter, r *http.Request, v *authenticatedRequest) {
	if mcp.EraOf(r.Header.Get(mcp.HeaderVersion)) == drawbridge.Modern {
		w.Header().Set("Allow", "POST")
		http.Error(w, "Method Not Allowed: this protocol version has no session stream", http.StatusMethodNotAllowed)
		return
	}
	if _, ok := acceptedTypes(r); !ok {
		http.Error(w, "Not Acceptable: the response is text/event-stream", http.StatusNotAcceptable)
		return
	}
	c, done, ok := d.findSession(w, r, v)
	if !ok {
		return
	}
	defer done()
	var at eventPosition
	last := r.Header.Get(mcp.HeaderLastEvent)
	if last != "" {
		if at, ok = c.events.parsePosition(last); !ok {
			http.Error(w, "Bad Request: "+mcp.HeaderLastEvent+" is not of this session", http.StatusBadRequest)
			return
		}
	}
	if !at.isOwnStream() {
		d.resumeStream(w, r, c, at)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c.watcher.setCaller(c.callerFor(v.caller))
	own, closed := c.openSessionStream(cancel, at, last != "")
	defer closed()
	streamHeaders(w)
	out := eventWriter(w)
	if out(own.first) == nil {
		d.streamFrames(ctx, c.ended, c.watcher, own.addEvent, out)
	}
}

// streamNotifications writes the notifications of a watcher until ctx ends, the session ends, the server shuts down, or
// the client disconnects. It reports whether the server ended the stream by shutting down.
func (d *httpHandler) streamNotifications(ctx context.Context, ended <-chan struct{}, w *watcher,
	out func([]byte) error) (ending bool) {
	return d.streamFrames(ctx, ended, w, eventFrame, out)
}

// streamFrames is like streamNotifications; frame encodes a message as an event. If frame returns nil, another
// connection must write the message. Then streamFrames returns the message to the watcher, and ends.
func (d *httpHandler) streamFrames(ctx context.Context, ended <-chan struct{}, w *watcher, frame func([]byte) []byte,
	out func([]byte) error) (ending bool) {
	ticker := time.NewTicker(d.s.o.KeepAlive)
	defer ticker.Stop()
	for {
		var batch []byte
		due := w.takeNotifications()
		for i, message := range due {
			e := frame(message)
			if e == nil {
				w.requeue(due[i:])
				return false
			}
			batch = append(batch, e...)
		}
		if len(batch) > 0 && out(batch) != nil {
			return false
		}
		select {
		case <-w.wake:
		case <-ticker.C:
			if out([]byte(mcp.SSEComment)) != nil {
				return false
			}
		case <-ctx.Done():
			return false
		case <-ended:
			return false
		case <-d.ending:
			return true
		case <-d.life.Done():
			return true
		}
	}
}
