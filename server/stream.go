package server

import (
	"context"
	"net/http"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// get opens a session's stream for what belongs to no call. It is the only one: an earlier one ends.
func (d *door) get(w http.ResponseWriter, r *http.Request) {
	if wire.EraOf(r.Header.Get(wire.HeaderVersion)) == drawbridge.Modern {
		w.Header().Set("Allow", "POST")
		http.Error(w, "Method Not Allowed: this revision has no stream of the session", http.StatusMethodNotAllowed)
		return
	}
	if _, ok := accepts(r); !ok {
		http.Error(w, "Not Acceptable: the answer is text/event-stream", http.StatusNotAcceptable)
		return
	}
	c, done, ok := d.session(w, r)
	if !ok {
		return
	}
	defer done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer c.openStream(cancel)()
	streamHeaders(w)
	out := eventWriter(w)
	if out([]byte(wire.Comment)) == nil { // shows the client that it is heard
		d.stream(ctx, c.ended, c.watcher, out)
	}
}

// stream writes what a watcher should hear until ctx or the session ends, or the client is gone. It says whether it is we
// who end.
func (d *door) stream(ctx context.Context, ended <-chan struct{}, w *watcher, out func([]byte) error) (ending bool) {
	ticker := time.NewTicker(d.s.o.KeepAlive)
	defer ticker.Stop()
	for {
		var batch []byte
		for _, message := range w.take() {
			batch = append(batch, event(message)...)
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
