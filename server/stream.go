package server

import (
	"context"
	"net/http"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/server/head"
	"github.com/drawbridge-mcp/drawbridge/server/trail"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// get opens a session's stream for what belongs to no call, or goes on with a stream behind the event that the client names.
// There is one connection for each: an earlier one ends.
func (d *door) get(w http.ResponseWriter, r *http.Request, v *visit) {
	if wire.EraOf(r.Header.Get(wire.HeaderVersion)) == drawbridge.Modern {
		w.Header().Set("Allow", "POST")
		http.Error(w, "Method Not Allowed: this revision has no stream of the session", http.StatusMethodNotAllowed)
		return
	}
	if _, ok := head.Accepts(r); !ok {
		http.Error(w, "Not Acceptable: the answer is text/event-stream", http.StatusNotAcceptable)
		return
	}
	c, done, ok := d.session(w, r, v)
	if !ok {
		return
	}
	defer done()
	var at trail.Position
	last := r.Header.Get(wire.HeaderLastEvent)
	if last != "" {
		if at, ok = c.trails.Read(last); !ok {
			http.Error(w, "Bad Request: "+wire.HeaderLastEvent+" is not of this session", http.StatusBadRequest)
			return
		}
	}
	if !at.Own() {
		d.resume(w, r, c, at)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c.watcher.hearAs(c.as(v.caller))
	own, closed := c.openStream(cancel, at, last != "")
	defer closed()
	streamHeaders(w)
	out := eventWriter(w)
	if out(own.First) == nil {
		d.tell(ctx, c.ended, c.watcher, own.Event, out)
	}
}

// stream writes what a watcher should hear until ctx or the session ends, or the client is gone. It says whether it is we
// who end.
func (d *door) stream(ctx context.Context, ended <-chan struct{}, w *watcher, out func([]byte) error) (ending bool) {
	return d.tell(ctx, ended, w, event, out)
}

// tell is stream with events as frame makes them of messages: nil for one that somebody else has to say.
func (d *door) tell(ctx context.Context, ended <-chan struct{}, w *watcher, frame func([]byte) []byte, out func([]byte) error) (ending bool) {
	ticker := time.NewTicker(d.s.o.KeepAlive)
	defer ticker.Stop()
	for {
		var batch []byte
		due := w.take()
		for i, message := range due {
			e := frame(message)
			if e == nil {
				w.giveBack(due[i:])
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
			if out([]byte(wire.Comment)) != nil {
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
