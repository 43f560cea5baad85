package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

const (
	// bufferSize is what wire's event reader wants of a buffer; a smaller one it would replace by its own.
	bufferSize = 64 << 10
	// minReopenPause and maxReopenPause bound the growing pauses between attempts to open a stream, where the server
	// asks for none.
	minReopenPause, maxReopenPause = 500 * time.Millisecond, 30 * time.Second
	// shortestReopenPause is the least pause, whatever the server asks for.
	shortestReopenPause = 20 * time.Millisecond
	// streamDrainTimeout is how long a stream may take to end behind the answer.
	streamDrainTimeout = time.Second
)

// A streamPosition is how far a stream was read, and when it may be opened again.
type streamPosition struct {
	lastEventID string        // the id of the last event that had one
	retry       time.Duration // what the server asked for; negative where it did not
}

// reopenPause is the pause before the next attempt, after so many in a row that went wrong. What the server asks for
// is the least.
func (p streamPosition) reopenPause(fails int) time.Duration {
	var d time.Duration
	if fails > 0 || p.retry < 0 {
		d = min(minReopenPause<<min(fails, 10), maxReopenPause)
		d += rand.N(d / 2)
	}
	return max(d, p.retry, shortestReopenPause)
}

// readerPool are kept from one stream to the next: each is larger than all the rest of a small call.
type readerPool struct{ pool sync.Pool }

func (b *readerPool) get(r io.Reader) *bufio.Reader {
	if buf, ok := b.pool.Get().(*bufio.Reader); ok {
		buf.Reset(r)
		return buf
	}
	return bufio.NewReaderSize(r, bufferSize)
}

func (b *readerPool) put(buf *bufio.Reader) {
	buf.Reset(nil)
	b.pool.Put(buf)
}

// A eventStream reads the events of one response.
type eventStream struct {
	h      *HTTPConn
	resp   *http.Response
	source boundedReader
	buf    *bufio.Reader
	events *mcp.SSEReader
}

func (h *HTTPConn) newEventStream(resp *http.Response) *eventStream {
	s := &eventStream{h: h, resp: resp, source: boundedReader{r: resp.Body}}
	s.buf = h.buffers.get(&s.source)
	s.events = mcp.NewSSEReader(s.buf, h.target.maxBody)
	return s
}

// nextMessageEvent gives the next event that carries messages and keeps account of where it stands.
func (s *eventStream) nextMessageEvent(at *streamPosition) (mcp.SSEEvent, error) {
	for {
		s.source.left = s.h.target.maxBody + bufferSize
		e, err := s.events.Next()
		if err != nil {
			return mcp.SSEEvent{}, err
		}
		if e.ID != "" {
			at.lastEventID = e.ID
		}
		if e.Retry >= 0 {
			at.retry = e.Retry
		}
		if isMessageEvent(e) {
			return e, nil
		}
	}
}

// isMessageEvent says whether an event carries messages. Those of other names are not for us.
func isMessageEvent(e mcp.SSEEvent) bool {
	return len(e.Data) > 0 && (e.Name == "" || e.Name == "message")
}

// close ends the stream at once.
func (s *eventStream) close() {
	_ = s.resp.Body.Close()
	s.h.buffers.put(s.buf)
}

// drainInBackground ends a stream behind its answer. Over HTTPConn/1 a connection is fit for use again when its body
// was read to the end, which the server may not have written yet: a goroutine waits for it, no longer than
// streamDrainTimeout, and then calls cancel. It says false where there is none.
func (s *eventStream) drainInBackground(cancel context.CancelFunc) bool {
	s.h.buffers.put(s.buf)
	body := s.resp.Body
	started := s.resp.ProtoMajor == 1 && s.h.startWorker(func() {
		defer cancel()
		defer time.AfterFunc(streamDrainTimeout, cancel).Stop()
		defer context.AfterFunc(s.h.ctx, cancel)()
		_, _ = io.CopyN(io.Discard, body, bufferSize)
		_ = body.Close()
	})
	if !started {
		_ = body.Close()
	}
	return started
}

// A boundedReader reader gives at most left bytes: an event without end must not be read for ever.
type boundedReader struct {
	r    io.Reader
	left int
}

// Read reads from the source. The error is mcp.ErrTooLong behind the bound.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, mcp.ErrTooLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// streamEndError gives the end of a stream a name.
func streamEndError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errStreamCutOff
	}
	return err
}
