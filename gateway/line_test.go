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
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/server"
)

// An httpLine reaches the HTTP door.
type httpLine struct {
	url string
	// token is the bearer token; empty sends none.
	token string
	era   drawbridge.ProtocolEra
	http  *http.Client
	hear  func(mcp.Message)
	// ctx ends with the line, and so does the session's stream, which is in work.
	ctx  context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex
	session string
	last    string // the id of the last event
}

func dialHTTP(url string, era drawbridge.ProtocolEra, hear func(mcp.Message)) *httpLine {
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
		req.Header.Set(mcp.HeaderSession, l.session)
	}
	return req, nil
}

func (l *httpLine) authorize(req *http.Request) {
	if l.token != "" {
		req.Header.Set("Authorization", "Bearer "+l.token)
	}
}

// post sends a message. In the stateless generation the headers say what the body says.
func (l *httpLine) post(ctx context.Context, m mcp.Message, marks []mcp.HeaderParam) (*http.Response, error) {
	req, err := l.request(ctx, m.Append(nil))
	if err != nil {
		return nil, err
	}
	if l.era == drawbridge.Modern {
		req.Header.Set(mcp.HeaderVersion, mcp.Version20260728)
		req.Header.Set(mcp.HeaderMethod, m.Method)
		if name, ok := mcp.TargetName(m.Method, m.Params); ok {
			req.Header.Set(mcp.HeaderName, mcp.EncodeHeaderValue(name))
		}
		for name, value := range mcp.EncodeParamHeaders(marks, rawjson.Get(m.Params, "arguments")) {
			req.Header.Set(name, value)
		}
	}
	return l.http.Do(req)
}

func (l *httpLine) exchange(ctx context.Context, m mcp.Message, marks []mcp.HeaderParam, hear func(mcp.Message)) (
	mcp.Message, error) {
	resp, err := l.post(ctx, m, marks)
	if err != nil {
		return mcp.Message{}, err
	}
	defer resp.Body.Close()
	if session := resp.Header.Get(mcp.HeaderSession); session != "" && m.Method == mcp.MethodInitialize {
		l.mu.Lock()
		l.session = session
		l.mu.Unlock()
		defer l.listen()
	}
	return l.follow(resp, m.ID, hear)
}

// follow reads what comes until the response to the request of that id.
func (l *httpLine) follow(resp *http.Response, id json.RawMessage, hear func(mcp.Message)) (mcp.Message, error) {
	var answer mcp.Message
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
func (l *httpLine) resume(ctx context.Context, id json.RawMessage, hear func(mcp.Message)) (mcp.Message, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return mcp.Message{}, err
	}
	l.mu.Lock()
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set(mcp.HeaderSession, l.session)
	req.Header.Set(mcp.HeaderLastEvent, l.last)
	l.mu.Unlock()
	resp, err := l.http.Do(req)
	if err != nil {
		return mcp.Message{}, err
	}
	defer resp.Body.Close()
	return l.follow(resp, id, hear)
}

// messagesOf returns the messages of a response, whether it is one, several, or a stream.
// seen, which may be nil, is told the id of each event.
func messagesOf(resp *http.Response, seen func(id string)) func(yield func(mcp.Message, error) bool) {
	return func(yield func(mcp.Message, error) bool) {
		if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			body, err := io.ReadAll(resp.Body)
			if err == nil && mcp.IsBatch(body) {
				for one := range rawjson.Elements(body) {
					if m, err := mcp.ParseMessage(one); !yield(m, err) {
						return
					}
				}
				return
			}
			m := mcp.Message{}
			if err == nil {
				m, err = mcp.ParseMessage(body)
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
		events := mcp.NewSSEReader(resp.Body, 0)
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
			m := mcp.Message{}
			if err == nil {
				m, err = mcp.ParseMessage(e.Data)
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
	req.Header.Set(mcp.HeaderSession, l.session)
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

func (l *httpLine) send(ctx context.Context, m mcp.Message) error {
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

func (l *httpLine) batch(ctx context.Context, body []byte, _ int) ([]mcp.Message, error) {
	req, err := l.request(ctx, body)
	if err != nil {
		return nil, err
	}
	if l.era == drawbridge.Modern {
		req.Header.Set(mcp.HeaderVersion, mcp.Version20260728)
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var all []mcp.Message
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
	hear func(mcp.Message)
	work sync.WaitGroup

	mu sync.Mutex
	// waiting are the requests without a response, by their id; others takes responses that have none.
	waiting map[string]chan mcp.Message
	others  chan mcp.Message
	writing sync.Mutex
	// gone is closed when nothing more comes.
	gone chan struct{}
}

// dialStdio serves a pair of pipes until the line is hung up.
func dialStdio(t testing.TB, s *server.Server, hear func(mcp.Message)) *pipeLine {
	ctx, end := context.WithCancel(context.Background())
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	l := &pipeLine{in: inW, out: outR, end: end, hear: hear, waiting: map[string]chan mcp.Message{},
		others: make(chan mcp.Message, 16), gone: make(chan struct{})}
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
	lines := mcp.NewLineReader(l.out, 0)
	for {
		text, err := lines.Next()
		if err != nil {
			return
		}
		if !mcp.IsBatch(text) {
			l.take(text)
			continue
		}
		for one := range rawjson.Elements(text) {
			l.take(one)
		}
	}
}

func (l *pipeLine) take(text []byte) {
	m, err := mcp.ParseMessage(text)
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
	default: // no one waits for it
	}
}

func (l *pipeLine) write(body []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	_, err := l.in.Write(append(body, '\n'))
	return err
}

func (l *pipeLine) exchange(ctx context.Context, m mcp.Message, _ []mcp.HeaderParam, _ func(mcp.Message)) (
	mcp.Message, error) {
	answer := make(chan mcp.Message, 1)
	l.mu.Lock()
	l.waiting[string(m.ID)] = answer
	l.mu.Unlock()
	if err := l.write(m.Append(nil)); err != nil {
		return mcp.Message{}, err
	}
	select {
	case got := <-answer:
		return got, nil
	case <-l.gone:
		return mcp.Message{}, io.ErrUnexpectedEOF
	case <-ctx.Done():
		return mcp.Message{}, ctx.Err()
	}
}

func (l *pipeLine) send(_ context.Context, m mcp.Message) error { return l.write(m.Append(nil)) }

func (l *pipeLine) batch(ctx context.Context, body []byte, responses int) ([]mcp.Message, error) {
	if err := l.write(body); err != nil {
		return nil, err
	}
	var all []mcp.Message
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
