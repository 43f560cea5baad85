package transport

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// startListening starts the goroutine that reads the stream outside requests: the event stream for messages that do not
// belong to a request. It does nothing if that goroutine was started before.
func (h *HTTPConn) startListening() {
	h.mu.Lock()
	first := !h.listening
	h.listening = true
	h.mu.Unlock()
	if first {
		h.startWorker(h.listenLoop)
	}
}

// listenStreamWait is how long a request waits until the stream outside requests is open. Some servers send the header
// of the stream only with its first event, so that the stream may be open without a sign of it.
const listenStreamWait = time.Second

// mayRequestDuring reports whether a server may send requests before it responds to a request with this method.
func mayRequestDuring(method string) bool {
	switch method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead:
		return true
	}
	return false
}

// awaitListenStream waits until the first attempt to open the stream outside requests has succeeded or failed, for at
// most listenStreamWait. Servers may send requests on that stream during a call, and the reference servers drop them if
// the stream is not open.
func (h *HTTPConn) awaitListenStream(ctx context.Context) {
	h.mu.Lock()
	listening := h.listening
	h.mu.Unlock()
	if !listening {
		return
	}
	select {
	case <-h.streamTried:
		return
	default:
	}
	late := time.AfterFunc(listenStreamWait, h.markStreamTried)
	defer late.Stop()
	select {
	case <-h.streamTried:
	case <-ctx.Done():
	case <-h.live.Done():
	}
}

// markStreamTried ends the wait of awaitListenStream.
func (h *HTTPConn) markStreamTried() { h.streamTriedOnce.Do(func() { close(h.streamTried) }) }

// A listenOutcome is the result of one attempt to open and read the stream outside requests.
type listenOutcome int

const (
	listenHadEvents   listenOutcome = iota // it was open and had events
	listenEndedSilent                      // it was open and ended without an event
	listenOpenFailed                       // it was not opened; a retry may succeed
	listenUnsupported                      // the server does not offer the stream
	listenSessionGone                      // the server does not know the session
)

// listenLoop keeps the stream outside requests open until the connection ends, or until a response shows that the
// server does not offer the stream.
func (h *HTTPConn) listenLoop() {
	at := streamPosition{retry: -1}
	opened, fails := false, 0
	for {
		result := h.listenOnce(&at, opened)
		switch {
		case h.live.Err() != nil:
			return
		case result == listenUnsupported, result == listenSessionGone && !opened:
			// Servers without a stream should send 405, but send many other statuses.
			h.log.Debug("the server does not offer a stream outside requests")
			return
		case result == listenSessionGone:
			h.markEnded(ErrSessionExpired)
			return
		case result == listenHadEvents:
			opened, fails = true, 0
		default:
			opened = opened || result == listenEndedSilent
			fails++
		}
		if !sleepContext(h.live, at.reopenPause(max(fails-1, 0))) {
			return
		}
	}
}

// listenOnce opens the stream outside requests and reads it until it ends. at is the position up to which the stream
// was read. again reports whether the stream was open before.
func (h *HTTPConn) listenOnce(at *streamPosition, again bool) listenOutcome {
	ctx, cancel := context.WithCancel(h.live)
	defer cancel()
	s := h.session.Load()
	resp, err := h.target.get(ctx, h.legacyHeader(s), at.lastEventID)
	h.markStreamTried()
	if err != nil {
		h.log.Debug("the stream outside requests did not open", "error", err)
		if errors.Is(err, ErrRedirectRefused) {
			return listenUnsupported
		}
		return listenOpenFailed
	}
	if !isSuccess(resp) || mediaType(resp) != mediaTypeEvents {
		return h.classifyNoStream(resp, s, again)
	}
	if again && at.lastEventID == "" && h.o.OnGap != nil {
		h.o.OnGap()
	}
	stream := h.newEventStream(ctx, resp, RoomPatience)
	defer stream.close()
	before, result := at.lastEventID, listenEndedSilent
	for {
		e, err := stream.nextMessageEvent(at)
		switch {
		case errors.Is(err, mcp.ErrTooLong):
			at.lastEventID = "" // otherwise the server would send the event again
			return result
		case err != nil && at.lastEventID != before:
			return listenHadEvents
		case err != nil:
			return result
		}
		result = listenHadEvents
		if !eachMessage(e.Data, h.dispatch) {
			h.reportJunk(e.Data)
		}
	}
}

// classifyNoStream returns the outcome for an HTTP response that is not a stream. Status 401 or 403 normally means that
// the server does not offer the stream. If the stream was open before, the credentials may only have expired, and a
// retry may succeed.
func (h *HTTPConn) classifyNoStream(resp *http.Response, s *legacySession, again bool) listenOutcome {
	body := readErrorBody(resp)
	credentials := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
	switch {
	case s.hasID() && isSessionExpired(resp.StatusCode, body, 0):
		return listenSessionGone
	case isRetryableStatus(resp.StatusCode), credentials && again:
		return listenOpenFailed
	}
	return listenUnsupported
}

// dispatch handles one message that arrived on the stream outside requests.
func (h *HTTPConn) dispatch(m mcp.Message) {
	switch {
	case isResponseOrMalformed(m):
		if !h.pending.deliverStrayResponse(m) {
			h.log.Debug("an answer outside its request is dropped")
		}
	case m.IsRequest():
		h.responder.respond(h.ctx, h.pending.sharedRequestHandler(), m)
	case m.Method == mcp.NoteCancelled:
		h.responder.cancelRequest(m.Params)
	default:
		if to := h.pending.sharedNotificationHandler(m.Method, m.Params); to != nil {
			to.HandleNotification(m.Method, m.Params)
		}
	}
}

func (h *HTTPConn) reportJunk(data []byte) {
	if h.o.OnJunk != nil {
		h.o.OnJunk(data)
	}
}
