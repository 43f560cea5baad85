//go:build !nomcp

package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/server"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// An httpLine reaches the HTTP door.
type httpLine struct {
	url string
	// token is the bearer token; empty sends none.
	token string
	era   drawbridge.Era
	http  *http.Client
	hear  func(wire.Message)
	// ctx ends with the line, and so does the session's stream, which is in work.
	ctx  context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex
	session string
	last    string // the id of the last event
}

func dialHTTP(url string, era drawbridge.Era, hear func(wire.Message)) *httpLine {
	l := &httpLine{url: url, era: era, http: &http.Client{Transport: &http.Transport{}}, hear: hear}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

func (l *httpLine) cancels() bool { return l.era == drawbridge.Modern }

func (l *httpLine) hangUp() {
	l.end()
	l.work.Wait()
	l.http.CloseIdleConnections()
}

// request makes a POST of a body.
func (l *httpLine) request(ctx context.Context, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	l.authorize(req)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != "" {
		req.Header.Set(wire.HeaderSession, l.session)
	}
	return req, nil
}

func (l *httpLine) authorize(req *http.Request) {
	if l.token != "" {
		req.Header.Set("Authorization", "Bearer "+l.token)
	}
}

// post sends a message. In the stateless generation the headers say what the body says.
func (l *httpLine) post(ctx context.Context, m wire.Message, marks []wire.ParamMark) (*http.Response, error) {
	req, err := l.request(ctx, m.Append(nil))
	if err != nil {
		return nil, err
	}
	if l.era == drawbridge.Modern {
		req.Header.Set(wire.HeaderVersion, wire.Version20260728)
		req.Header.Set(wire.HeaderMethod, m.Method)
		if name, ok := wire.NameOf(m.Method, m.Params); ok {
			req.Header.Set(wire.HeaderName, wire.EncodeHeader(name))
		}
		for name, value := range wire.ParamHeaders(marks, wire.Get(m.Params, "arguments")) {
			req.Header.Set(name, value)
		}
	}
	return l.http.Do(req)
}

func (l *httpLine) exchange(ctx context.Context, m wire.Message, marks []wire.ParamMark, hear func(wire.Message)) (wire.Message, error) {
	resp, err := l.post(ctx, m, marks)
	if err != nil {
		return wire.Message{}, err
	}
	defer resp.Body.Close()
	if session := resp.Header.Get(wire.HeaderSession); session != "" && m.Method == wire.MethodInitialize {
		l.mu.Lock()
		l.session = session
		l.mu.Unlock()
		defer l.listen()
	}
	return l.follow(resp, m.ID, hear)
}

// follow reads what comes until the response to the request of that id.
func (l *httpLine) follow(resp *http.Response, id json.RawMessage, hear func(wire.Message)) (wire.Message, error) {
	var answer wire.Message
	seen := func(event string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.last = event
	}
	for message, err := range messagesOf(resp, seen) {
		switch {
		case err != nil:
			return answer, err
		case message.IsResponse() && string(message.ID) == string(id):
			answer = message
		default:
			hear(message)
		}
	}
	if !answer.IsResponse() {
		return answer, fmt.Errorf("status %d without a response", resp.StatusCode)
	}
	return answer, nil
}

// resume goes on with the stream of a request whose connection was lost.
func (l *httpLine) resume(ctx context.Context, id json.RawMessage, hear func(wire.Message)) (wire.Message, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return wire.Message{}, err
	}
	l.mu.Lock()
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set(wire.HeaderSession, l.session)
	req.Header.Set(wire.HeaderLastEvent, l.last)
	l.mu.Unlock()
	resp, err := l.http.Do(req)
	if err != nil {
		return wire.Message{}, err
	}
	defer resp.Body.Close()
	return l.follow(resp, id, hear)
}

// messagesOf gives the messages of a response, whether it is one, several, or a stream.
// seen, which may be nil, is told the id of each event.
func messagesOf(resp *http.Response, seen func(id string)) func(yield func(wire.Message, error) bool) {
	return func(yield func(wire.Message, error) bool) {
		if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			body, err := io.ReadAll(resp.Body)
			if err == nil && wire.IsBatch(body) {
				for one := range wire.Elements(body) {
					if m, err := wire.Parse(one); !yield(m, err) {
						return
					}
				}
				return
			}
			m := wire.Message{}
			if err == nil {
				m, err = wire.Parse(body)
			}
			if err != nil {
				err = fmt.Errorf("status %d, body %q: %w", resp.StatusCode, body, err)
			}
			yield(m, err)
			return
		}
		if seen == nil {
			seen = func(string) {}
		}
		events := wire.NewEventReader(resp.Body, 0)
		for {
			e, err := events.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil {
				seen(e.ID)
			}
			if err == nil && len(e.Data) == 0 {
				continue // it is there for its id
			}
			m := wire.Message{}
			if err == nil {
				m, err = wire.Parse(e.Data)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// listen opens the session's stream, and waits until it is open.
func (l *httpLine) listen() {
	req, err := http.NewRequestWithContext(l.ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set(wire.HeaderSession, l.session)
	l.authorize(req)
	resp, err := l.http.Do(req)
	if err != nil {
		return
	}
	l.work.Go(func() {
		defer resp.Body.Close()
		for m, err := range messagesOf(resp, nil) {
			if err == nil {
				l.hear(m)
			}
		}
	})
}

func (l *httpLine) send(ctx context.Context, m wire.Message) error {
	resp, err := l.post(ctx, m, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

func (l *httpLine) batch(ctx context.Context, body []byte, _ int) ([]wire.Message, error) {
	req, err := l.request(ctx, body)
	if err != nil {
		return nil, err
	}
	if l.era == drawbridge.Modern {
		req.Header.Set(wire.HeaderVersion, wire.Version20260728)
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var all []wire.Message
	for m, err := range messagesOf(resp, nil) {
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
	return all, nil
}

// A pipeLine reaches the stdio door, which serves it alone.
type pipeLine struct {
	in   *io.PipeWriter
	out  *io.PipeReader
	end  context.CancelFunc
	hear func(wire.Message)
	work sync.WaitGroup

	mu sync.Mutex
	// waiting are the requests without a response, by their id; others takes responses that have none.
	waiting map[string]chan wire.Message
	others  chan wire.Message
	writing sync.Mutex
	// gone is closed when nothing more comes.
	gone chan struct{}
}

// dialStdio serves a pair of pipes until the line is hung up.
func dialStdio(t testing.TB, s *server.Server, hear func(wire.Message)) *pipeLine {
	ctx, end := context.WithCancel(context.Background())
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	l := &pipeLine{in: inW, out: outR, end: end, hear: hear, waiting: map[string]chan wire.Message{}, others: make(chan wire.Message, 16), gone: make(chan struct{})}
	l.work.Go(func() {
		err := s.ServeStdio(ctx, inR, outW)
		if err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			t.Errorf("serve stdio: %v", err)
		}
		_ = outW.Close()
	})
	l.work.Go(l.read)
	return l
}

func (l *pipeLine) cancels() bool { return false }

func (l *pipeLine) hangUp() {
	l.end()
	l.work.Wait()
}

func (l *pipeLine) read() {
	defer close(l.gone)
	lines := wire.NewLineReader(l.out, 0)
	for {
		text, err := lines.Next()
		if err != nil {
			return
		}
		if !wire.IsBatch(text) {
			l.take(text)
			continue
		}
		for one := range wire.Elements(text) {
			l.take(one)
		}
	}
}

func (l *pipeLine) take(text []byte) {
	m, err := wire.Parse(text)
	if err != nil {
		return
	}
	if !m.IsResponse() {
		l.hear(m)
		return
	}
	l.mu.Lock()
	answer, ok := l.waiting[string(m.ID)]
	delete(l.waiting, string(m.ID))
	l.mu.Unlock()
	if !ok {
		answer = l.others
	}
	select {
	case answer <- m:
	default: // nobody waits for it
	}
}

func (l *pipeLine) write(body []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	_, err := l.in.Write(append(body, '\n'))
	return err
}

func (l *pipeLine) exchange(ctx context.Context, m wire.Message, _ []wire.ParamMark, _ func(wire.Message)) (wire.Message, error) {
	answer := make(chan wire.Message, 1)
	l.mu.Lock()
	l.waiting[string(m.ID)] = answer
	l.mu.Unlock()
	if err := l.write(m.Append(nil)); err != nil {
		return wire.Message{}, err
	}
	select {
	case got := <-answer:
		return got, nil
	case <-l.gone:
		return wire.Message{}, io.ErrUnexpectedEOF
	case <-ctx.Done():
		return wire.Message{}, ctx.Err()
	}
}

func (l *pipeLine) send(_ context.Context, m wire.Message) error { return l.write(m.Append(nil)) }

func (l *pipeLine) batch(ctx context.Context, body []byte, responses int) ([]wire.Message, error) {
	if err := l.write(body); err != nil {
		return nil, err
	}
	var all []wire.Message
	for range responses {
		select {
		case m := <-l.others:
			all = append(all, m)
		case <-ctx.Done():
			return all, ctx.Err()
		}
	}
	return all, nil
}
