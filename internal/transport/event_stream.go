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
	// bufferSize is the buffer size in bytes that mcp.SSEReader needs. With a smaller buffer, it would allocate another
	// one.
	bufferSize = 64 << 10
	// minReopenPause and maxReopenPause bound the growing pause before a stream is opened again, if the server does not
	// specify a pause.
	minReopenPause, maxReopenPause = 500 * time.Millisecond, 30 * time.Second
	// shortestReopenPause is the minimum pause, even if the server specifies a shorter one.
	shortestReopenPause = 20 * time.Millisecond
	// streamDrainTimeout is how long a stream may remain open after the response was read; it is then closed.
	streamDrainTimeout = time.Second
)

// RoomPatience is how long a message on a stream that several requests share waits for room in the budget of answers.
// The messages behind it wait too.
const RoomPatience = 20 * time.Second

// A streamPosition is the position up to which a stream was read, with the pause before it may be opened again.
type streamPosition struct {
	lastEventID string        // the ID of the last event with an ID
	retry       time.Duration // the server's retry value; negative if it sent none
}

// reopenPause returns the pause before the next attempt to open the stream. fails is the number of failed attempts in a
// row. The pause is never shorter than the server's retry value.
func (p streamPosition) reopenPause(fails int) time.Duration {
	var d time.Duration
	if fails > 0 || p.retry < 0 {
		d = min(minReopenPause<<min(fails, 10), maxReopenPause)
		d += rand.N(d / 2)
	}
	return max(d, p.retry, shortestReopenPause)
}

// A readerPool reuses read buffers. A buffer needs more memory than the rest of a small call.
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

// newEventStream returns a reader of the events of a response. An event waits for room in the budget until ctx ends, for
// at most patience if that is positive.
func (h *HTTPConn) newEventStream(ctx context.Context, resp *http.Response, patience time.Duration) *eventStream {
	s := &eventStream{h: h, resp: resp, source: boundedReader{r: resp.Body}}
	s.buf = h.buffers.get(&s.source)
	s.events = mcp.NewSSEReader(s.buf, h.target.maxBody)
	s.events.UseBudget(ctx, h.o.Budget, patience)
	return s
}

// nextMessageEvent returns the next event that contains messages, and updates the position.
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

// isMessageEvent reports whether an event contains messages. Events with other names are ignored.
func isMessageEvent(e mcp.SSEEvent) bool {
	return len(e.Data) > 0 && (e.Name == "" || e.Name == "message")
}

// close closes the stream without reading it to its end.
func (s *eventStream) close() {
	_ = s.resp.Body.Close()
	s.h.buffers.put(s.buf)
}

// drainInBackground closes a stream after its response was read. An HTTP/1 connection can be reused only if the body
// was read to its end, which the server may not have sent yet. Therefore a goroutine reads the rest, for at most
// streamDrainTimeout, and then calls cancel. drainInBackground returns false if it starts no goroutine; cancel is then
// not called.
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

// A boundedReader reads at most left bytes from r, and then returns an error. Its user sets left before each event, so
// that an event without an end is not read forever.
type boundedReader struct {
	r    io.Reader
	left int
}

// Read reads from r. After left bytes it returns mcp.ErrTooLong.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, mcp.ErrTooLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// streamEndError returns errStreamCutOff if err is the end of a stream, otherwise err.
func streamEndError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errStreamCutOff
	}
	return err
}
