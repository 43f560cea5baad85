package llm

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

const (
	// firstPartTimeout limits the wait for the first byte of an answer: a model on this machine reads the whole
	// conversation before it begins. nextPartTimeout limits the wait for each next byte.
	firstPartTimeout = 5 * time.Minute
	nextPartTimeout  = 2 * time.Minute
	// maxStream is the maximum number of bytes of an answer, and maxStreamEvent that of one of its events.
	maxStream      = 64 << 20
	maxStreamEvent = 16 << 20
)

var (
	errSilent    = errors.New("no answer began in time; a slow model needs a longer timeout in its provider's settings")
	errStalled   = errors.New("the answer stopped before its end, and nothing more came in time")
	errCut       = errors.New("the connection ended before the answer did")
	errNotStream = errors.New("the answer is not a stream of events; is the address right?")
	errNotJSON   = errors.New("an event of the answer is not understood")
	errEmpty     = errors.New("the answer is empty")
	errTooLarge  = errors.New("the answer is too large")
)

// A streamReader reads the events of one answer.
type streamReader interface {
	// readEvent reads the data of one event. It reports whether the answer is complete.
	readEvent(data []byte) (done bool, err error)
	// finish returns the answer after the last event. It returns an error if the answer is not complete.
	finish() (drawbridge.ModelResponse, error)
}

// stream sends a request and lets reader read the answer. The error is a *ProviderError, one of the errors of this
// package, or the error of the key. A broken answer has begun.
func (c *apiClient) stream(ctx context.Context, a apiRequest, body []byte, first, next time.Duration,
	reader streamReader) (drawbridge.ModelResponse, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := &watchedBody{next: next, left: maxStream}
	watched.timer = time.AfterFunc(first, func() { cancel(errSilent) })
	defer watched.timer.Stop()
	a.accept = "text/event-stream"
	resp, err := c.open(ctx, a, body)
	if err == nil {
		defer resp.Body.Close()
		watched.from = resp.Body
		if err = checkEventStream(resp); err == nil {
			err = readEvents(watched, reader)
		}
	}
	switch {
	case err == nil:
		return reader.finish()
	case context.Cause(ctx) == errSilent && watched.begun:
		err = errStalled
	case context.Cause(ctx) == errSilent:
		err = errSilent
	}
	return drawbridge.ModelResponse{}, err
}

// checkEventStream returns an error if a response with status 200 is a page or a JSON document. Some endpoints send an
// error this way.
func checkEventStream(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case kind == "application/json":
		raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		if e := streamError(raw); e != nil {
			return e
		}
		return errNotStream
	case kind == "text/html":
		return errNotStream
	}
	return nil
}

// readEvents lets reader read all events of body. A line end is added, so that the last event counts if only its line
// end is missing; an event that was cut is not JSON any more.
func readEvents(body io.Reader, reader streamReader) error {
	events := mcp.NewSSEReader(io.MultiReader(body, strings.NewReader("\n\n")), maxStreamEvent)
	for {
		e, err := events.Next()
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, mcp.ErrTooLong):
			return errTooLarge
		case errors.Is(err, errTooLarge):
			return err
		case err != nil:
			return errCut
		case len(e.Data) == 0:
			continue
		}
		if done, err := reader.readEvent(e.Data); err != nil || done {
			return err
		}
	}
}

// A watchedBody restarts the timer whenever a part of the body arrives, and limits its size. begun is set when the first
// part has arrived.
type watchedBody struct {
	from  io.Reader
	begun bool
	timer *time.Timer
	next  time.Duration
	left  int64
}

// Read reads from the body.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	b.begun = b.begun || n > 0
	if n > 0 && b.timer.Stop() {
		b.timer.Reset(b.next)
	}
	return n, err
}
