package server

import (
	"context"
	"net/http"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// resumeStream resumes the stream of a request whose client lost its connection. If nothing more follows, clients
// expect the status 405: 404 would mean that their session is gone.
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
	if comment() != nil || !out.run(write, d.s.o.KeepAlive, comment) { // the first shows the client that it is heard
		t.connectionLost(out)
		return
	}
	t.outboxWritten(out)
}

// closeConnection closes the connection of a response from within its handler. net/http offers no direct way to do
// this.
func closeConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the response ends with its handler, and with it the wait of a client that wants to come back
	}
	_ = conn.SetWriteDeadline(time.Now().Add(writeTime))
	_, _ = conn.Write([]byte("0\r\n\r\n")) // the end of the chunks; a client that misses it comes back all the same
	_ = conn.Close()
}
