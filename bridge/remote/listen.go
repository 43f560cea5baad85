package remote

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// listen begins to hear what the server says outside requests, once.
func (h *HTTP) listen() {
	h.mu.Lock()
	first := !h.listening
	h.listening = true
	h.mu.Unlock()
	if first {
		h.start(h.hear)
	}
}

// streamTime bounds how long a request waits for the stream outside requests. Some servers answer there only once they
// have something to say.
const streamTime = time.Second

// asks says whether a server may want to ask something before it answers a request.
func asks(method string) bool {
	switch method {
	case wire.MethodToolsCall, wire.MethodPromptsGet, wire.MethodResourcesRead:
		return true
	}
	return false
}

// awaitStream waits for the answer to the first attempt to open the stream outside requests. Servers ask there too in the
// course of a call, and the reference servers drop what they say while nobody listens: a session that is opened for a call
// would have lost the question.
func (h *HTTP) awaitStream(ctx context.Context) {
	h.mu.Lock()
	listening := h.listening
	h.mu.Unlock()
	if !listening {
		return
	}
	select {
	case <-h.tried:
		return
	default:
	}
	late := time.AfterFunc(streamTime, h.answered)
	defer late.Stop()
	select {
	case <-h.tried:
	case <-ctx.Done():
	case <-h.live.Done():
	}
}

// answered notes that nobody need wait for the stream any more.
func (h *HTTP) answered() { h.trying.Do(func() { close(h.tried) }) }

// What comes of one attempt to open the stream.
type outcome int

const (
	heard  outcome = iota // it was open and something came
	closed                // it was open, and ended without a word
	failed                // it did not open; it may later
	absent                // the server has none
	gone                  // the server does not know the session
)

// hear is the goroutine that keeps the stream open as long as the connection lives.
func (h *HTTP) hear() {
	at := position{retry: -1}
	opened, fails := false, 0
	for {
		result := h.hearOnce(&at, opened)
		switch {
		case h.live.Err() != nil:
			return
		case result == absent, result == gone && !opened:
			// Servers without a stream should say 405; they say all sorts of things.
			h.log.Debug("the server offers no stream outside requests")
			return
		case result == gone:
			h.end(ErrSession)
			return
		case result == heard:
			opened, fails = true, 0
		default:
			opened = opened || result == closed
			fails++
		}
		if !pause(h.live, at.wait(max(fails-1, 0))) {
			return
		}
	}
}

// hearOnce opens the stream and reads it to its end.
func (h *HTTP) hearOnce(at *position, again bool) outcome {
	ctx, cancel := context.WithCancel(h.live)
	defer cancel()
	s := h.session.Load()
	resp, err := h.target.get(ctx, h.legacyHeader(s), at.last)
	h.answered()
	if err != nil {
		h.log.Debug("the stream outside requests did not open", "error", err)
		if errors.Is(err, ErrRedirect) {
			return absent
		}
		return failed
	}
	if !succeeded(resp) || typeOf(resp) != typeEvents {
		return h.noStream(resp, s, again)
	}
	if again && at.last == "" && h.o.OnGap != nil {
		h.o.OnGap()
	}
	stream := h.open(resp)
	defer stream.close()
	before, result := at.last, closed
	for {
		e, err := stream.next(at)
		switch {
		case errors.Is(err, wire.ErrTooLong):
			at.last = "" // or the server would send it again
			return result
		case err != nil && at.last != before:
			return heard
		case err != nil:
			return result
		}
		result = heard
		if !link.Messages(e.Data, h.take) {
			h.junk(e.Data)
		}
	}
}

// noStream says what a response means that is no stream. Where there was one before, credentials may only have run out.
func (h *HTTP) noStream(resp *http.Response, s *session, again bool) outcome {
	body := errorBody(resp)
	credentials := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
	switch {
	case s.kept() && sessionGone(resp.StatusCode, body, 0):
		return gone
	case worthRetry(resp.StatusCode), credentials && again:
		return failed
	}
	return absent
}

// take takes in one message from outside requests.
func (h *HTTP) take(m wire.Message) {
	switch {
	case m.IsResponse():
		if !h.calls.Answered(m) {
			h.log.Debug("an answer outside its request is dropped")
		}
	case m.IsRequest():
		h.asks.Answer(h.ctx, h.calls.Asked(), m)
	case m.Method == wire.NoteCancelled:
		h.asks.Cancelled(m.Params)
	default:
		if to := h.calls.Noted(m.Method, m.Params); to != nil {
			to.Notify(m.Method, m.Params)
		}
	}
}

func (h *HTTP) junk(data []byte) {
	if h.o.OnJunk != nil {
		h.o.OnJunk(data)
	}
}
