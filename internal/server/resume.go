package server

import (
	"context"
	"net/http"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// resumeStream resumes the stream of a request whose client lost its connection, after the event at. If no events
// follow, the status is 405. The status 404 would tell the client that its session is unknown.
func (d *httpHandler) resumeStream(w http.ResponseWriter, r *http.Request, c *session, at eventPosition) {
	t, out := c.events.resumeStream(at)
	if t == nil {
		w.Header().Set("Allow", "POST, DELETE")
		http.Error(w, "Method Not Allowed: this stream is over", http.StatusMethodNotAllowed)
		return
	}
	streamHeaders(w)
	defer context.AfterFunc(r.Context(), func() { t.connectionLost(out) })()
	write := eventWriter(w)
	comment := func() error { return write([]byte(mcp.SSEComment)) }
	if comment() != nil || !out.run(write, d.s.o.KeepAlive, comment) { // shows that the stream is open
		t.connectionLost(out)
		return
	}
	t.outboxWritten(out)
}

// closeConnection closes the connection of a response while the response's handler is running. net/http has no direct
// way to do this.
func closeConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the response ends when its handler returns; then the client reconnects
	}
	_ = conn.SetWriteDeadline(time.Now().Add(writeTime))
	_, _ = conn.Write([]byte("0\r\n\r\n")) // the end of the body; without it the client reconnects too
	_ = conn.Close()
}
