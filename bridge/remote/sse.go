package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// An sse is what a link.Stream over HTTP+SSE runs on: one stream in, a POST for each message out.
type sse struct {
	in     target
	out    target // the same, at the address that the server named
	own    *http.Transport
	cancel context.CancelFunc // ends the stream

	body   io.ReadCloser
	source bounded
	events *wire.EventReader
}

// DialSSE connects to a server of the older HTTP+SSE transport (revision 2024-11-05): it opens the stream and waits for
// the address that messages go to, which must be of the same origin. ctx bounds this, not the connection. OnGap is not
// used, and Marks neither. The error can be a *StatusError, ErrRedirect, or wraps link.ErrClosed or link.ErrLost.
func DialSSE(ctx context.Context, o Options) (link.Conn, error) {
	t, own, err := newTarget(o)
	if err != nil {
		return nil, err
	}
	s := &sse{in: t, out: t, own: own}
	during, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	stop := context.AfterFunc(ctx, cancel)
	if err = s.open(during); err == nil && stop() {
		return link.NewStream(link.StreamOptions{
			Send: s.send, Parallel: true, Next: s.next, Close: s.close,
			Handler: o.Handler, OnJunk: o.OnJunk, MaxAsks: o.MaxAsks, Logger: o.Logger,
		}), nil
	}
	_ = s.close(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, err
}

// open opens the stream and reads up to the address.
func (s *sse) open(ctx context.Context) error {
	resp, err := s.in.get(ctx, s.in.header.Clone(), "")
	if err != nil {
		return err
	}
	if !succeeded(resp) {
		return statusError(resp, errorBody(resp))
	}
	s.body = resp.Body
	if media := typeOf(resp); media != typeEvents {
		return fmt.Errorf("the stream has content type %.60q", media)
	}
	s.source.r = s.body
	s.events = wire.NewEventReader(bufio.NewReaderSize(&s.source, bufferSize), s.in.max)
	for {
		e, err := s.event()
		if err != nil {
			return lost(because(err))
		}
		if e.Name == "endpoint" {
			return s.endpoint(string(e.Data))
		}
	}
}

// endpoint takes the address that messages go to.
func (s *sse) endpoint(address string) error {
	ref, err := url.Parse(address)
	if err != nil {
		return errors.New("the server names no valid address for messages")
	}
	u := s.in.url.ResolveReference(ref)
	if originOf(u) != originOf(s.in.url) {
		return fmt.Errorf("%w: messages should go to another origin, %s", ErrRedirect, originOf(u))
	}
	if u.User = s.in.url.User; s.in.url.User == nil {
		u.User = nil
	}
	u.Fragment = ""
	s.out.url = u
	return nil
}

func (s *sse) event() (wire.Event, error) {
	s.source.left = s.in.max + bufferSize
	return s.events.Next()
}

// next gives what the next event with messages carries.
func (s *sse) next() ([]byte, error) {
	for {
		e, err := s.event()
		if err != nil {
			return nil, err
		}
		if isMessage(e) {
			return e.Data, nil
		}
	}
}

// send posts a message. Nearly all that goes wrong concerns the message alone: the connection is the stream.
func (s *sse) send(ctx context.Context, msg []byte) error {
	resp, err := s.out.do(ctx, http.MethodPost, s.out.header.Clone(), msg)
	if err != nil {
		return alone{err}
	}
	if succeeded(resp) {
		finishBody(resp)
		return nil
	}
	body := errorBody(resp)
	if sessionGone(resp.StatusCode, body, 0) {
		return unsent{ErrSession}
	}
	return alone{statusError(resp, body)}
}

// close ends the stream.
func (s *sse) close(context.Context) error {
	s.cancel()
	if s.body != nil {
		_ = s.body.Close()
	}
	if s.own != nil {
		s.own.CloseIdleConnections()
	}
	return nil
}
