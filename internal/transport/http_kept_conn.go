package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// maxInterimResponses is how many responses with a status below 200 may precede a response.
const maxInterimResponses = 5

var (
	errHeaderTooLong   = fmt.Errorf("the header of the response exceeds %d bytes", maxResponseHeader)
	errTooManyInterims = errors.New("too many interim responses")
	errBodyClosed      = errors.New("read on a closed response body")
)

// A keptConn is an HTTP/1.1 connection without a goroutine. It belongs to the request that uses it, or is idle.
type keptConn struct {
	t    *HTTPTransport
	at   connKey
	conn net.Conn // a *tls.Conn for https
	in   *bufio.Reader
	// left is how many bytes may be read before the header of the response ends.
	left int64
	// socket is the connection below TLS; it is nil if the operating system cannot say whether that is alive.
	socket syscall.RawConn
	check  aliveCheck

	idleSince time.Time
	isReused  bool
}

// newKeptConn returns a connection on conn. below is the connection below TLS.
func newKeptConn(t *HTTPTransport, at connKey, conn, below net.Conn) *keptConn {
	c := &keptConn{t: t, at: at, conn: conn}
	if s, ok := below.(syscall.Conn); ok {
		c.socket, _ = s.SyscallConn()
	}
	c.in = bufio.NewReader(c)
	return c
}

// Read reads from the connection, but not more of a header than maxResponseHeader.
func (c *keptConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errHeaderTooLong
	}
	n, err := c.conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

func (c *keptConn) close() { _ = c.conn.Close() }

func (c *keptConn) canBeChecked() bool { return c.socket != nil }

// isAlive reports whether an idle connection can be used again. The server must not have closed it, and must not have
// sent anything, which could be taken for the response to the next request.
func (c *keptConn) isAlive() bool { return c.in.Buffered() == 0 && c.check.isQuiet(c.socket) }

// roundTrip sends msg, which is the encoded request, and reads the header of the response. After an error the
// connection is closed; again reports whether the request may be sent on another connection.
func (c *keptConn) roundTrip(req *http.Request, msg []byte) (resp *http.Response, again bool, err error) {
	ctx := req.Context()
	stop := context.AfterFunc(ctx, c.close)
	fail := func(err error, again bool) (*http.Response, bool, error) {
		stop()
		c.close()
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		return nil, again && c.isReused, err
	}
	c.left = maxResponseHeader
	if n, err := c.conn.Write(msg); err != nil {
		return fail(fmt.Errorf("write the request: %w", err), n == 0 || isReplayable(req))
	}
	if _, err := c.in.Peek(1); err != nil {
		return fail(fmt.Errorf("read the response: %w", err), isReplayable(req))
	}
	if resp, err = c.readHeader(req); err != nil {
		return fail(fmt.Errorf("read the response: %w", err), false)
	}
	c.left = math.MaxInt64
	if s, ok := c.conn.(*tls.Conn); ok {
		state := s.ConnectionState()
		resp.TLS = &state
	}
	body := &keptBody{c: c, ctx: ctx, stop: stop, inner: resp.Body, mayKeep: !resp.Close && !req.Close}
	if resp.Body == http.NoBody || resp.StatusCode == http.StatusSwitchingProtocols {
		body.mayKeep = body.mayKeep && resp.StatusCode != http.StatusSwitchingProtocols
		body.finish(true)
		resp.Body = http.NoBody
		return resp, false, nil
	}
	resp.Body = body
	return resp, false, nil
}

// readHeader reads the header of the response, and drops the interim responses before it. net/http parses it, so that
// the framing of the body is judged as strictly as there.
func (c *keptConn) readHeader(req *http.Request) (*http.Response, error) {
	for range maxInterimResponses + 1 {
		resp, err := http.ReadResponse(c.in, req)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF) && c.left <= 0:
			return nil, errHeaderTooLong
		case err != nil:
			return nil, err
		case resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols:
			return resp, nil
		}
	}
	return nil, errTooManyInterims
}

// isReplayable reports whether a request may be sent again although the server may have received it.
func isReplayable(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	_, hinted := req.Header["Idempotency-Key"]
	if !hinted {
		_, hinted = req.Header["X-Idempotency-Key"]
	}
	return hinted
}

// A keptBody is the body of a response. At its end the connection becomes idle.
type keptBody struct {
	c       *keptConn
	ctx     context.Context
	stop    func() bool // ends the watch on ctx; false if ctx has ended
	inner   io.ReadCloser
	mayKeep bool

	mu     sync.Mutex
	ended  bool // whether finish was called
	result error
}

// Read reads from the body.
func (b *keptBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	ended, result := b.ended, b.result
	b.mu.Unlock()
	if ended {
		return 0, result
	}
	n, err := b.inner.Read(p)
	switch {
	case err == io.EOF:
		b.finish(true)
	case err != nil:
		if b.ctx.Err() != nil {
			err = b.ctx.Err()
		}
		b.finishWith(false, err)
	}
	return n, err
}

// Close closes the connection unless the body was read to its end. It does not read the rest.
func (b *keptBody) Close() error {
	b.finishWith(false, errBodyClosed)
	return nil
}

// finish ends the use of the connection. whole reports whether the body was read to its end.
func (b *keptBody) finish(whole bool) { b.finishWith(whole, io.EOF) }

// finishWith is finish; result is the error of later reads. Only the first call has an effect.
func (b *keptBody) finishWith(whole bool, result error) {
	b.mu.Lock()
	first := !b.ended
	if first {
		b.ended, b.result = true, result
	}
	b.mu.Unlock()
	if !first {
		return
	}
	if unwatched := b.stop(); whole && unwatched && b.mayKeep && b.c.in.Buffered() == 0 {
		b.c.t.keep(b.c)
		return
	}
	b.c.close()
}
