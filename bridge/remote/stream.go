package remote

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

const (
	// bufferSize is what wire's event reader wants of a buffer; a smaller one it would replace by its own.
	bufferSize = 64 << 10
	// firstWait and lastWait bound the growing pauses between attempts to open a stream, where the server asks for none.
	firstWait, lastWait = 500 * time.Millisecond, 30 * time.Second
	// shortestWait is the least pause, whatever the server asks for.
	shortestWait = 20 * time.Millisecond
	// restTime is how long a stream may take to end behind the answer.
	restTime = time.Second
)

// A position is how far a stream was read, and when it may be opened again.
type position struct {
	last  string        // the id of the last event that had one
	retry time.Duration // what the server asked for; negative where it did not
}

// wait is the pause before the next attempt, after so many in a row that went wrong. What the server asks for is the
// least.
func (p position) wait(fails int) time.Duration {
	var d time.Duration
	if fails > 0 || p.retry < 0 {
		d = min(firstWait<<min(fails, 10), lastWait)
		d += rand.N(d / 2)
	}
	return max(d, p.retry, shortestWait)
}

// buffers are kept from one stream to the next: each is larger than all the rest of a small call.
type buffers struct{ pool sync.Pool }

func (b *buffers) get(r io.Reader) *bufio.Reader {
	if buf, ok := b.pool.Get().(*bufio.Reader); ok {
		buf.Reset(r)
		return buf
	}
	return bufio.NewReaderSize(r, bufferSize)
}

func (b *buffers) put(buf *bufio.Reader) {
	buf.Reset(nil)
	b.pool.Put(buf)
}

// A stream reads the events of one response.
type stream struct {
	h      *HTTP
	resp   *http.Response
	source bounded
	buf    *bufio.Reader
	events *wire.EventReader
}

func (h *HTTP) open(resp *http.Response) *stream {
	s := &stream{h: h, resp: resp, source: bounded{r: resp.Body}}
	s.buf = h.buffers.get(&s.source)
	s.events = wire.NewEventReader(s.buf, h.target.max)
	return s
}

// next gives the next event that carries messages and keeps account of where it stands.
func (s *stream) next(at *position) (wire.Event, error) {
	for {
		s.source.left = s.h.target.max + bufferSize
		e, err := s.events.Next()
		if err != nil {
			return wire.Event{}, err
		}
		if e.ID != "" {
			at.last = e.ID
		}
		if e.Retry >= 0 {
			at.retry = e.Retry
		}
		if isMessage(e) {
			return e, nil
		}
	}
}

// isMessage says whether an event carries messages. Those of other names are not for us.
func isMessage(e wire.Event) bool {
	return len(e.Data) > 0 && (e.Name == "" || e.Name == "message")
}

// close ends the stream at once.
func (s *stream) close() {
	_ = s.resp.Body.Close()
	s.h.buffers.put(s.buf)
}

// finish ends a stream behind its answer. Over HTTP/1 a connection is fit for use again when its body was read to the
// end, which the server may not have written yet: a goroutine waits for it, no longer than restTime, and then calls
// cancel. It says false where there is none.
func (s *stream) finish(cancel context.CancelFunc) bool {
	s.h.buffers.put(s.buf)
	body := s.resp.Body
	started := s.resp.ProtoMajor == 1 && s.h.start(func() {
		defer cancel()
		defer time.AfterFunc(restTime, cancel).Stop()
		defer context.AfterFunc(s.h.ctx, cancel)()
		_, _ = io.CopyN(io.Discard, body, bufferSize)
		_ = body.Close()
	})
	if !started {
		_ = body.Close()
	}
	return started
}

// A bounded reader gives at most left bytes: an event without end must not be read for ever.
type bounded struct {
	r    io.Reader
	left int
}

// Read reads from the source. The error is wire.ErrTooLong behind the bound.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, wire.ErrTooLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// because gives the end of a stream a name.
func because(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCutOff
	}
	return err
}
