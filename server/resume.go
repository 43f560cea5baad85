package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A position is a place in one stream of a session: an event, behind which a client goes on.
type position struct{ trail, event int }

// id is the event's id. The tag keeps it from meaning anything in another session.
func (p position) id(tag string) string {
	id := make([]byte, 0, len(tag)+12)
	id = strconv.AppendInt(append(append(id, tag...), '-'), int64(p.trail), 10)
	return string(strconv.AppendInt(append(id, '-'), int64(p.event), 10))
}

// readPosition reads an event id. It says false for what is none, or has another tag.
func readPosition(tag, id string) (position, bool) {
	rest, ok := strings.CutPrefix(id, tag+"-")
	if !ok {
		return position{}, false
	}
	trail, event, _ := strings.Cut(rest, "-")
	var p position
	var err, none error
	p.trail, err = strconv.Atoi(trail)
	p.event, none = strconv.Atoi(event)
	return p, err == nil && none == nil && p.trail >= 0 && p.event >= 0 && p.id(tag) == id // one spelling only
}

// tagOf gives the tag of a session's events, which does not tell the session's id.
func tagOf(session string) string {
	sum := sha256.Sum256([]byte("events of session " + session))
	return hex.EncodeToString(sum[:5])
}

// resume goes on with the stream of a request whose client lost its connection. A status of 405 is what clients expect
// for a stream there is nothing more to hear of: 404 would tell them that their session is gone.
func (d *door) resume(w http.ResponseWriter, r *http.Request, c *session, at position) {
	t, out := c.trails.resume(at)
	if t == nil {
		w.Header().Set("Allow", "POST, DELETE")
		http.Error(w, "Method Not Allowed: nothing more comes on this stream", http.StatusMethodNotAllowed)
		return
	}
	streamHeaders(w)
	defer context.AfterFunc(r.Context(), func() { t.lost(out) })()
	write := eventWriter(w)
	comment := func() error { return write([]byte(wire.Comment)) }
	if comment() != nil || !out.run(write, d.s.o.KeepAlive, comment) { // the first shows the client that it is heard
		t.lost(out)
		return
	}
	t.wrote(out)
}

// hangUp ends a response in the midst of its handler, for which net/http has no words.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the response ends with its handler, and with it the wait of a client that wants to come back
	}
	_ = conn.SetWriteDeadline(time.Now().Add(writeTime))
	_, _ = conn.Write([]byte("0\r\n\r\n")) // the end of the chunks; a client that misses it comes back all the same
	_ = conn.Close()
}
