package remote

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// headerFor gives the header of a message: what mirrors its body in the modern generation, the session in the legacy one.
func (h *HTTP) headerFor(m wire.Message) http.Header {
	version := wire.VersionOf(m.Params)
	if !isModern(m.Params) {
		return h.legacyHeader(h.sessionOf(m))
	}
	header := h.target.header.Clone()
	header.Set(wire.HeaderVersion, version)
	header.Set(wire.HeaderMethod, m.Method)
	if name, ok := wire.NameOf(m.Method, m.Params); ok {
		header.Set(wire.HeaderName, wire.EncodeHeader(name))
		if m.Method == wire.MethodToolsCall && h.o.Marks != nil {
			for name, value := range wire.ParamHeaders(h.o.Marks(name), wire.Get(m.Params, "arguments")) {
				header.Set(name, value)
			}
		}
	}
	return header
}

// repeatable says whether a request may be sent twice: it reads, or sets what is set already. net/http then sends it again
// where a connection that was kept turns out to be dead, which servers that close idle ones early make a matter of luck.
// A subscription is not among them: whoever subscribed must learn that there was a gap.
func repeatable(method string) bool {
	switch method {
	case wire.MethodInitialize, wire.MethodDiscover, wire.MethodPing, wire.MethodToolsList, wire.MethodPromptsList,
		wire.MethodPromptsGet, wire.MethodResourcesList, wire.MethodTemplatesList, wire.MethodResourcesRead,
		wire.MethodSubscribe, wire.MethodUnsubscribe, wire.MethodSetLevel, wire.MethodComplete:
		return true
	}
	return false
}

// sessionOf gives the session that a message belongs to; nil for a modern one, and for one outside any session.
func (h *HTTP) sessionOf(m wire.Message) *session {
	if m.Method == wire.MethodInitialize || isModern(m.Params) {
		return nil
	}
	return h.session.Load()
}

// legacyHeader gives the header of a message in a session, which may be nil.
func (h *HTTP) legacyHeader(s *session) http.Header {
	header := h.target.header.Clone()
	if s != nil && s.version != "" {
		header.Set(wire.HeaderVersion, s.version)
	}
	if s.kept() {
		header.Set(wire.HeaderSession, s.id)
	}
	return header
}

// post sends a message. The header becomes the request's own.
func (t *target) post(ctx context.Context, header http.Header, m wire.Message) (*http.Response, error) {
	const envelope, key = 64, "Idempotency-Key"
	if _, set := header[key]; !set && repeatable(m.Method) {
		header[key] = nil // a word to net/http, which does not send it
	}
	size := envelope + len(m.ID) + len(m.Method) + len(m.Params) + len(m.Result) + len(m.Error)
	return t.do(ctx, http.MethodPost, header, m.Append(make([]byte, 0, size)))
}

// get opens an event stream, behind the event with the id last where that is not empty.
func (t *target) get(ctx context.Context, header http.Header, last string) (*http.Response, error) {
	header.Del("Content-Type")
	header.Set("Accept", typeEvents)
	if last != "" {
		header.Set(wire.HeaderLastEvent, last)
	}
	return t.do(ctx, http.MethodGet, header, nil)
}

// do carries out one exchange up to the header of the response, signed where there is a signer. The error is one of
// exchangeError's, or the signer's, which is about the one request.
func (t *target) do(ctx context.Context, method string, header http.Header, body []byte) (*http.Response, error) {
	if t.signer == nil {
		return t.once(ctx, method, header, body)
	}
	token, err := t.signer.Token(ctx)
	if err != nil {
		return nil, alone{err} // not unsent: another connection would be no better
	}
	for first := method != http.MethodDelete; ; first = false { // nobody signs in to say farewell
		if token != "" {
			header = header.Clone() // the first request may still be on its way
			header.Set("Authorization", "Bearer "+token)
		}
		resp, err := t.once(ctx, method, header, body)
		if err != nil || !first || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp, err
		}
		if token, err = t.signAgain(ctx, token, resp); err != nil || token == "" {
			return resp, err
		}
	}
}

// signAgain asks the signer for another token. With none, and no error, the response stands as it is.
func (t *target) signAgain(ctx context.Context, used string, resp *http.Response) (string, error) {
	body := errorBody(resp)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return t.signer.Refused(ctx, used, resp.StatusCode, resp.Header, body)
}

// once carries out one exchange.
func (t *target) once(ctx context.Context, method string, header http.Header, body []byte) (*http.Response, error) {
	req := (&http.Request{Method: method, URL: t.url, Host: t.host, Header: header}).WithContext(ctx)
	if body != nil {
		// A bytes.Reader is known to net/http, which then sends header and body in one packet.
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return nil, exchangeError(err)
	}
	return resp, nil
}

func succeeded(resp *http.Response) bool { return resp.StatusCode >= 200 && resp.StatusCode < 300 }

// typeOf gives the media type of a response, without parameters, in lower case.
func typeOf(resp *http.Response) string {
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// readBody reads a body whole, and closes it. The error is wire.ErrTooLong for more than max bytes, else the reader's.
func readBody(resp *http.Response, max int) ([]byte, error) {
	defer resp.Body.Close()
	// The length is the server's word: memory comes with the bytes, but for small bodies.
	const most = 1 << 20
	size := 1 << 10
	if n := resp.ContentLength; n >= 0 {
		size = int(min(n, most)) + 1
	}
	data := make([]byte, 0, size)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := resp.Body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case len(data) > max:
			return nil, wire.ErrTooLong
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

// errorBody reads what is of interest in the body of a refusal, and closes it.
func errorBody(resp *http.Response) []byte {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what there is, is good enough
	_ = resp.Body.Close()
	return body
}

// finishBody ends an exchange whose body says nothing. What is read to the end leaves the connection fit for use.
func finishBody(resp *http.Response) {
	const most = 4 << 10
	if resp.ContentLength != 0 && typeOf(resp) != typeEvents {
		_, _ = io.CopyN(io.Discard, resp.Body, most)
	}
	_ = resp.Body.Close()
}
