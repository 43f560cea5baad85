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
	retry       time.Duration // the server's retry value; negative if it sent none
}

// reopenPause returns the pause before the next attempt, after so many failed ones in a row. It is never shorter than
// the server's retry value.
func (p streamPosition) reopenPause(fails int) time.Duration {
	var d time.Duration
	if fails > 0 || p.retry < 0 {
		d = min(minReopenPause<<min(fails, 10), maxReopenPause)
		d += rand.N(d / 2)
	}
	return max(d, p.retry, shortestReopenPause)
}

// A readerPool reuses read buffers: each is larger than all other memory of a small call.
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

// An eventStream reads the events of one response.
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

// nextMessageEvent returns the next event that carries messages, and updates the position.
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

// isMessageEvent reports whether an event carries messages. Events with other names are ignored.
func isMessageEvent(e mcp.SSEEvent) bool {
	return len(e.Data) > 0 && (e.Name == "" || e.Name == "message")
}

// close ends the stream at once.
func (s *eventStream) close() {
	_ = s.resp.Body.Close()
	s.h.buffers.put(s.buf)
}

// drainInBackground ends a stream after its answer. An HTTP/1 connection can be reused once the body was read to its
// end, which the server may not have written yet. A goroutine waits for that, at most for streamDrainTimeout, and then
// calls cancel. It returns false if it starts none.
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

// A boundedReader reads at most left bytes: an endless event must not be read for ever.
type boundedReader struct {
	r    io.Reader
	left int
}

// Read reads from the source. It returns mcp.ErrTooLong after the limit.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, mcp.ErrTooLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// streamEndError returns the error that describes the end of a stream.
func streamEndError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errStreamCutOff
	}
	return err
}
