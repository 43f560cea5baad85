package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// maxResumes is how many attempts to resume a response may fail one after another. The request then fails.
const maxResumes = 5

var (
	errNoAnswer     = errors.New("the response body has no answer")
	errStreamCutOff = errors.New("the stream ended before the answer")
	errCannotResume = errors.New("the stream ended before the answer, and the session with it")
)

// An httpExchange is one HTTP request with its HTTP response, which may be a stream of several messages.
type httpExchange struct {
	conn    *HTTPConn
	request pendingRequest
	method  string
	modern  bool
	// cancel ends the exchange. cancelHandedOff is set if a goroutine will call cancel.
	cancel          context.CancelFunc
	cancelHandedOff bool

	answer   mcp.Message
	answered bool // whether answer is set
	// strayAnswer is a response that arrived on the stream outside requests.
	strayAnswer atomic.Pointer[mcp.Message]
}

// acceptStrayAnswer stores a response that arrived on the stream outside requests, and ends the exchange. The
// specification permits such a response only when a stream is resumed. But a server that breaks off a response may
// treat the next stream that is opened as the resumed stream.
func (x *httpExchange) acceptStrayAnswer(m mcp.Message) {
	if x.strayAnswer.CompareAndSwap(nil, &m) {
		x.cancel()
	}
}

// roundTrip sends the request, and reads messages until the response to the request has arrived.
func (x *httpExchange) roundTrip(ctx context.Context, m mcp.Message) (mcp.Message, error) {
	s := x.conn.sessionOf(m)
	resp, err := x.conn.target.post(ctx, x.conn.requestHeader(m), m)
	if err != nil {
		return mcp.Message{}, err
	}
	switch media := mediaType(resp); {
	case !isSuccess(resp):
		return x.readRefusal(resp, s)
	case media == mediaTypeEvents:
		x.saveSession(resp)
		err = x.followStream(ctx, resp)
	case media == mediaTypeJSON || media == "":
		err = x.readJSONAnswer(ctx, resp)
	default:
		_ = resp.Body.Close()
		err = fmt.Errorf("the answer has content type %.60q", media)
	}
	if err != nil {
		return mcp.Message{}, wrapLost(err)
	}
	x.saveSession(resp)
	return x.answer, nil
}

// saveSession stores the session that a stateful server creates in its response to initialize. For a stream, it is also
// called before the body is read, so that the session ID is known early.
func (x *httpExchange) saveSession(resp *http.Response) {
	if x.method != mcp.MethodInitialize || x.modern {
		return
	}
	s := &legacySession{version: rawjson.GetString(x.answer.Result, "protocolVersion"),
		id: resp.Header.Get(mcp.HeaderSession)}
	x.conn.session.Store(s)
}

// readJSONAnswer reads the response from a JSON body.
func (x *httpExchange) readJSONAnswer(ctx context.Context, resp *http.Response) error {
	body, err := readBody(resp, x.conn.target.maxBody, mcp.NewAnswerBuffer(ctx, x.conn.o.Budget, 0))
	if err != nil {
		return err
	}
	if !eachMessage(body, x.dispatch) {
		x.conn.reportJunk(body)
	}
	if !x.answered {
		return errNoAnswer
	}
	return nil
}

// dispatch handles one message that arrived in the HTTP response to the request.
func (x *httpExchange) dispatch(m mcp.Message) {
	switch h := x.conn; {
	case isResponseOrMalformed(m):
		if !x.answered && (answersRequest(m, x.request.id) || isParseFailure(m)) {
			x.answer, x.answered = m, true
			return
		}
		h.log.Debug("an answer to another request is dropped")
	case m.IsRequest():
		if x.modern {
			h.log.Debug("a request of a server that may not ask is dropped")
			return
		}
		h.responder.respond(h.ctx, h.pending.requestHandler(&x.request), m)
	case m.Method == mcp.NoteCancelled:
		h.responder.cancelRequest(m.Params)
	default:
		if to := h.pending.notificationHandler(&x.request, m.Method); to != nil {
			to.HandleNotification(m.Method, m.Params)
		}
	}
}

// readRefusal reads an HTTP response with an error status. It returns the JSON-RPC response in the body, if there is
// one, or an error.
func (x *httpExchange) readRefusal(resp *http.Response, s *legacySession) (mcp.Message, error) {
	body := readErrorBody(resp)
	if s.hasID() && isSessionExpired(resp.StatusCode, body, x.request.id) {
		return mcp.Message{}, ErrSessionExpired
	}
	if m, ok := parseErrorResponse(body, x.request.id); ok && !isHTTPLevelStatus(resp.StatusCode) {
		return m, nil
	}
	return mcp.Message{}, newHTTPStatusError(resp, body)
}

// isHTTPLevelStatus reports whether HTTP defines what a client must do after a status: sign in, wait, or retry. The
// body of such a response is then not used as the response to the request.
func isHTTPLevelStatus(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// parseErrorResponse returns the JSON-RPC error response in a body, if it answers the request with that ID. A body that
// is not JSON-RPC may look similar. Therefore the body must contain the ID, or no ID and the member "jsonrpc".
func parseErrorResponse(body []byte, id uint64) (mcp.Message, bool) {
	m, err := mcp.ParseMessage(body)
	if err != nil || !m.IsResponse() || rawjson.Get(m.Error, "code") == nil {
		return mcp.Message{}, false
	}
	if nobodys := m.ID == nil || string(m.ID) == "null"; nobodys {
		return m, rawjson.Get(body, "jsonrpc") != nil
	}
	return m, answersRequest(m, id)
}

// isSessionExpired reports whether an error status means that the server does not know the session any more. The
// specification defines status 404 for that. The reference servers in TypeScript send status 400 with an error message
// that contains "session".
func isSessionExpired(status int, body []byte, id uint64) bool {
	if status != http.StatusNotFound && status != http.StatusBadRequest {
		return false
	}
	m, ok := parseErrorResponse(body, id)
	if status == http.StatusNotFound && (!ok || !answersRequest(m, id)) {
		return true
	}
	return ok && strings.Contains(strings.ToLower(rawjson.GetString(m.Error, "message")), "session")
}

// followStream reads the response from an event stream. If the stream breaks, followStream resumes it if the server
// supports that.
func (x *httpExchange) followStream(ctx context.Context, resp *http.Response) error {
	at := streamPosition{retry: -1}
	for {
		err := x.readStream(ctx, resp, &at)
		switch {
		case err == nil:
			return nil
		case x.modern || at.lastEventID == "" || errors.Is(err, mcp.ErrTooLong):
			return err
		}
		if p, ok := x.request.handler.(ReconnectListener); ok && at.retry >= 0 {
			p.OnReconnectRequest(at.retry)
		}
		if resp, err = x.resumeStream(ctx, at); err != nil {
			return err
		}
	}
}

// readStream reads one stream until the response has arrived. It returns an error if the stream ended before the
// response.
func (x *httpExchange) readStream(ctx context.Context, resp *http.Response, at *streamPosition) error {
	s := x.conn.newEventStream(ctx, resp, 0)
	for !x.answered {
		e, err := s.nextMessageEvent(at)
		if err != nil {
			s.close()
			return streamEndError(err)
		}
		if !eachMessage(e.Data, x.dispatch) {
			x.conn.reportJunk(e.Data)
		}
	}
	x.cancelHandedOff = s.drainInBackground(x.cancel)
	return nil
}

// resumeStream opens the stream again at the position where it broke. It makes at most maxResumes attempts.
func (x *httpExchange) resumeStream(ctx context.Context, at streamPosition) (*http.Response, error) {
	for fails := 0; ; fails++ {
		if !sleepContext(ctx, at.reopenPause(fails)) {
			return nil, ctx.Err()
		}
		resp, again, err := x.reopenStream(ctx, at.lastEventID)
		if err == nil || !again || fails == maxResumes-1 {
			return resp, err
		}
	}
}

// reopenStream requests the events of the stream after the event with the ID last. If that fails, again reports whether
// another attempt is useful.
func (x *httpExchange) reopenStream(ctx context.Context, last string) (resp *http.Response, again bool, err error) {
	s := x.conn.session.Load()
	resp, err = x.conn.target.get(ctx, x.conn.legacyHeader(s), last)
	if err != nil {
		return nil, !errors.Is(err, ErrRedirectRefused), err
	}
	if isSuccess(resp) && mediaType(resp) == mediaTypeEvents {
		return resp, false, nil
	}
	body := readErrorBody(resp)
	if s.hasID() && isSessionExpired(resp.StatusCode, body, 0) {
		x.conn.markEnded(ErrSessionExpired) // not the error of this request, which was sent and may have been executed
		return nil, false, errCannotResume
	}
	return nil, isRetryableStatus(resp.StatusCode), newHTTPStatusError(resp, body)
}

// isRetryableStatus reports whether a retry may succeed after this status.
func isRetryableStatus(status int) bool {
	return status >= 500 && status != http.StatusNotImplemented || status == http.StatusTooManyRequests ||
		status == http.StatusRequestTimeout
}
