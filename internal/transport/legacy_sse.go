package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// An sseTransport connects a StreamConn to an HTTP+SSE server: it receives messages on one event stream and sends each
// message with a POST request.
type sseTransport struct {
	getTarget    httpTarget
	postTarget   httpTarget // as getTarget, with the URL from the server
	ownTransport *HTTPTransport
	budget       *mcp.AnswerBudget
	cancel       context.CancelFunc // closes the stream

	body   io.ReadCloser
	source boundedReader
	events *mcp.SSEReader
}

// DialSSE connects to a server with the older HTTP+SSE transport (revision 2024-11-05). It opens the stream and waits
// for the URL to which messages are sent. That URL must have the same origin. ctx bounds only DialSSE, not the
// connection. OnGap and HeaderParams are not used. The error can be an *HTTPStatusError or ErrRedirectRefused, or wraps
// ErrClosed or ErrLost.
func DialSSE(ctx context.Context, o HTTPOptions) (Conn, error) {
	t, own, err := newHTTPTarget(o)
	if err != nil {
		return nil, err
	}
	s := &sseTransport{getTarget: t, postTarget: t, ownTransport: own, budget: o.Budget}
	during, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	stop := context.AfterFunc(ctx, cancel)
	if err = s.openStream(during); err == nil && stop() {
		return NewStreamConn(ctx, StreamConnOptions{
			Send: s.postMessage, ParallelSend: true, Receive: s.nextMessage, Close: s.close,
			Handler: o.Handler, OnJunk: o.OnJunk, MaxServerRequests: o.MaxServerRequests, Logger: o.Logger,
		}), nil
	}
	_ = s.close(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, err
}

// openStream opens the stream and reads it until the URL for messages has arrived.
func (s *sseTransport) openStream(ctx context.Context) error {
	resp, err := s.getTarget.get(ctx, s.getTarget.header.Clone(), "")
	if err != nil {
		return err
	}
	if !isSuccess(resp) {
		return newHTTPStatusError(resp, readErrorBody(resp))
	}
	s.body = resp.Body
	if media := mediaType(resp); media != mediaTypeEvents {
		return fmt.Errorf("the stream has content type %.60q", media)
	}
	s.source.r = s.body
	s.events = mcp.NewSSEReader(bufio.NewReaderSize(&s.source, bufferSize), s.getTarget.maxBody)
	s.events.UseBudget(ctx, s.budget, RoomPatience)
	for {
		e, err := s.nextEvent()
		if err != nil {
			return wrapLost(streamEndError(err))
		}
		if e.Name == "endpoint" {
			return s.setPostURL(string(e.Data))
		}
	}
}

// setPostURL sets the URL to which messages are sent.
func (s *sseTransport) setPostURL(address string) error {
	ref, err := url.Parse(address)
	if err != nil {
		return errors.New("the server names no valid address for messages")
	}
	u := s.getTarget.url.ResolveReference(ref)
	if originOf(u) != originOf(s.getTarget.url) {
		return fmt.Errorf("%w: messages should go to another origin, %s", ErrRedirectRefused, originOf(u))
	}
	if u.User = s.getTarget.url.User; s.getTarget.url.User == nil {
		u.User = nil
	}
	u.Fragment = ""
	s.postTarget.url = u
	return nil
}

func (s *sseTransport) nextEvent() (mcp.SSEEvent, error) {
	s.source.left = s.getTarget.maxBody + bufferSize
	return s.events.Next()
}

// nextMessage returns the data of the next event that contains messages.
func (s *sseTransport) nextMessage() ([]byte, error) {
	for {
		e, err := s.nextEvent()
		if err != nil {
			return nil, err
		}
		if isMessageEvent(e) {
			return e.Data, nil
		}
	}
}

// postMessage sends a message with a POST request. Most errors wrap ErrRefused: they concern only the message and do
// not end the connection, which consists of the event stream.
func (s *sseTransport) postMessage(ctx context.Context, msg []byte) error {
	resp, err := s.postTarget.doAuthorized(ctx, http.MethodPost, s.postTarget.header.Clone(), msg)
	if err != nil {
		return refusedMessageError{err}
	}
	if isSuccess(resp) {
		drainBody(resp)
		return nil
	}
	body := readErrorBody(resp)
	if isSessionExpired(resp.StatusCode, body, 0) {
		return unsentError{ErrSessionExpired}
	}
	return refusedMessageError{newHTTPStatusError(resp, body)}
}

// close closes the stream and, if this transport created them, the idle HTTP connections.
func (s *sseTransport) close(context.Context) error {
	s.cancel()
	if s.body != nil {
		_ = s.body.Close()
	}
	if s.ownTransport != nil {
		s.ownTransport.CloseIdleConnections()
	}
	return nil
}
