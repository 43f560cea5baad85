package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// maxResumes is how many times in a row the resumption of an answer may go wrong.
const maxResumes = 5

var (
	errNoAnswer = errors.New("the body holds no answer")
	errCutOff   = errors.New("the stream ended before the answer")
	errNoResume = errors.New("the stream ended before the answer, and the session with it")
)

// An exchange is one request and what comes back for it.
type exchange struct {
	h      *HTTP
	call   link.Call
	method string
	modern bool
	// cancel ends the exchange; handed says that a goroutine will call it.
	cancel context.CancelFunc
	handed bool

	answer wire.Message
	found  bool // whether answer is there
	// elsewhere is an answer that came on the stream outside requests.
	elsewhere atomic.Pointer[wire.Message]
}

// takeElsewhere takes in an answer that came on the stream outside requests, and ends the exchange. The specification has
// answers there only where a stream is resumed. But a server that cuts off an answer and waits for the client to come
// back may take the first stream that opens for the one that resumes.
func (x *exchange) takeElsewhere(m wire.Message) {
	if x.elsewhere.CompareAndSwap(nil, &m) {
		x.cancel()
	}
}

// do sends the request and reads up to its answer.
func (x *exchange) do(ctx context.Context, m wire.Message) (wire.Message, error) {
	s := x.h.sessionOf(m)
	resp, err := x.h.target.post(ctx, x.h.headerFor(m), m)
	if err != nil {
		return wire.Message{}, err
	}
	switch media := typeOf(resp); {
	case !succeeded(resp):
		return x.refused(resp, s)
	case media == typeEvents:
		x.began(resp)
		err = x.follow(ctx, resp)
	case media == typeJSON || media == "":
		err = x.whole(resp)
	default:
		_ = resp.Body.Close()
		err = fmt.Errorf("the answer has content type %.60q", media)
	}
	if err != nil {
		return wire.Message{}, lost(err)
	}
	x.began(resp)
	return x.answer, nil
}

// began remembers the session that a legacy server begins in answer to initialize: its id as soon as that is known.
func (x *exchange) began(resp *http.Response) {
	if x.method != wire.MethodInitialize || x.modern {
		return
	}
	s := &session{version: wire.GetText(x.answer.Result, "protocolVersion"), id: resp.Header.Get(wire.HeaderSession)}
	x.h.session.Store(s)
}

// whole reads an answer that is a body of JSON.
func (x *exchange) whole(resp *http.Response) error {
	body, err := readBody(resp, x.h.target.max)
	if err != nil {
		return err
	}
	if !link.Messages(body, x.take) {
		x.h.junk(body)
	}
	if !x.found {
		return errNoAnswer
	}
	return nil
}

// take takes in one message that came for the request.
func (x *exchange) take(m wire.Message) {
	switch h := x.h; {
	case m.IsResponse():
		if !x.found && (link.Answers(m, x.call.ID) || link.NotUnderstood(m)) {
			x.answer, x.found = m, true
			return
		}
		h.log.Debug("an answer to another request is dropped")
	case m.IsRequest():
		if x.modern {
			h.log.Debug("a request of a server that may not ask is dropped")
			return
		}
		h.asks.Answer(h.ctx, h.calls.AskedIn(&x.call), m)
	case m.Method == wire.NoteCancelled:
		h.asks.Cancelled(m.Params)
	default:
		if to := h.calls.NotedIn(&x.call, m.Method); to != nil {
			to.Notify(m.Method, m.Params)
		}
	}
}

// refused makes what a response says that is no success: the answer, or an error.
func (x *exchange) refused(resp *http.Response, s *session) (wire.Message, error) {
	body := errorBody(resp)
	if s.kept() && sessionGone(resp.StatusCode, body, x.call.ID) {
		return wire.Message{}, ErrSession
	}
	if m, ok := errorIn(body, x.call.ID); ok && !forHTTP(resp.StatusCode) {
		return m, nil
	}
	return wire.Message{}, statusError(resp, body)
}

// forHTTP says whether a status means something to whoever speaks HTTP, whatever the body says beside it: sign in, wait,
// try again.
func forHTTP(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// errorIn finds a JSON-RPC error that answers request id in a body. Many a body looks like one: it has "jsonrpc" or the id.
func errorIn(body []byte, id uint64) (wire.Message, bool) {
	m, err := wire.Parse(body)
	if err != nil || !m.IsResponse() || wire.Get(m.Error, "code") == nil {
		return wire.Message{}, false
	}
	if nobodys := m.ID == nil || string(m.ID) == "null"; nobodys {
		return m, wire.Get(body, "jsonrpc") != nil
	}
	return m, link.Answers(m, id)
}

// sessionGone says whether a refusal in a session means that the server does not know the session any more: a status of
// 404, says the specification; the reference servers in TypeScript say 400 and tell it in the text.
func sessionGone(status int, body []byte, id uint64) bool {
	if status != http.StatusNotFound && status != http.StatusBadRequest {
		return false
	}
	m, ok := errorIn(body, id)
	if status == http.StatusNotFound && (!ok || !link.Answers(m, id)) {
		return true
	}
	return ok && strings.Contains(strings.ToLower(wire.GetText(m.Error, "message")), "session")
}

// follow reads an answer that is an event stream, and resumes it where it breaks off and the server made that possible.
func (x *exchange) follow(ctx context.Context, resp *http.Response) error {
	at := position{retry: -1}
	for {
		err := x.read(resp, &at)
		switch {
		case err == nil:
			return nil
		case x.modern || at.last == "" || errors.Is(err, wire.ErrTooLong):
			return err
		}
		if p, ok := x.call.In.(link.Poller); ok && at.retry >= 0 {
			p.Polled(at.retry)
		}
		if resp, err = x.resume(ctx, at); err != nil {
			return err
		}
	}
}

// read reads one stream up to the answer. The error says how it ended without one.
func (x *exchange) read(resp *http.Response, at *position) error {
	s := x.h.open(resp)
	for !x.found {
		e, err := s.next(at)
		if err != nil {
			s.close()
			return because(err)
		}
		if !link.Messages(e.Data, x.take) {
			x.h.junk(e.Data)
		}
	}
	x.handed = s.finish(x.cancel)
	return nil
}

// resume opens the stream again where it broke off. It tries maxResumes times.
func (x *exchange) resume(ctx context.Context, at position) (*http.Response, error) {
	for fails := 0; ; fails++ {
		if !pause(ctx, at.wait(fails)) {
			return nil, ctx.Err()
		}
		resp, again, err := x.reopen(ctx, at.last)
		if err == nil || !again || fails == maxResumes-1 {
			return resp, err
		}
	}
}

// reopen asks for the stream behind the event with the id last. Where that goes wrong it says whether to try again.
func (x *exchange) reopen(ctx context.Context, last string) (resp *http.Response, again bool, err error) {
	s := x.h.session.Load()
	resp, err = x.h.target.get(ctx, x.h.legacyHeader(s), last)
	if err != nil {
		return nil, !errors.Is(err, ErrRedirect), err
	}
	if succeeded(resp) && typeOf(resp) == typeEvents {
		return resp, false, nil
	}
	body := errorBody(resp)
	if s.kept() && sessionGone(resp.StatusCode, body, 0) {
		x.h.end(ErrSession) // not this request's error: it was sent, and may have been carried out
		return nil, false, errNoResume
	}
	return nil, worthRetry(resp.StatusCode), statusError(resp, body)
}

// worthRetry says whether a server that answers with this status may think otherwise in a moment.
func worthRetry(status int) bool {
	return status >= 500 && status != http.StatusNotImplemented || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}
