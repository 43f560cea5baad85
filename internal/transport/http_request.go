package transport

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

const (
	mediaTypeJSON   = "application/json"
	mediaTypeEvents = "text/event-stream"
)

// requestHeader returns the HTTP header of a message. For a stateless request, the header repeats values of its params.
// For a stateful message, it contains the session.
func (h *HTTPConn) requestHeader(m mcp.Message) http.Header {
	version := mcp.ProtocolVersion(m.Params)
	if !isModernRequest(m.Params) {
		return h.legacyHeader(h.sessionOf(m))
	}
	header := h.target.header.Clone()
	header.Set(mcp.HeaderVersion, version)
	header.Set(mcp.HeaderMethod, m.Method)
	if name, ok := mcp.TargetName(m.Method, m.Params); ok {
		header.Set(mcp.HeaderName, mcp.EncodeHeaderValue(name))
		if m.Method == mcp.MethodToolsCall && h.o.HeaderParams != nil {
			for name, value := range mcp.EncodeParamHeaders(h.o.HeaderParams(name),
				rawjson.Get(m.Params, "arguments")) {
				header.Set(name, value)
			}
		}
	}
	return header
}

// isRepeatableMethod reports whether a request may be sent twice: it only reads, or a second execution has no further
// effect. If the server closes a reused connection at the moment when a request is sent, net/http sends such a request
// again. A request to listen for changes is not repeatable, since the subscriber must be notified of the gap.
func isRepeatableMethod(method string) bool {
	switch method {
	case mcp.MethodInitialize, mcp.MethodDiscover, mcp.MethodPing, mcp.MethodToolsList, mcp.MethodPromptsList,
		mcp.MethodPromptsGet, mcp.MethodResourcesList, mcp.MethodTemplatesList, mcp.MethodResourcesRead,
		mcp.MethodSubscribe, mcp.MethodUnsubscribe, mcp.MethodSetLevel, mcp.MethodComplete:
		return true
	}
	return false
}

// sessionOf returns the session that a message belongs to. It returns nil for a stateless request, for initialize, and
// if there is no session.
func (h *HTTPConn) sessionOf(m mcp.Message) *legacySession {
	if m.Method == mcp.MethodInitialize || isModernRequest(m.Params) {
		return nil
	}
	return h.session.Load()
}

// legacyHeader returns the HTTP header of a message in the session s, which may be nil.
func (h *HTTPConn) legacyHeader(s *legacySession) http.Header {
	header := h.target.header.Clone()
	if s != nil && s.version != "" {
		header.Set(mcp.HeaderVersion, s.version)
	}
	if s.hasID() {
		header.Set(mcp.HeaderSession, s.id)
	}
	return header
}

// post sends a message in a POST request. header must not be used afterwards.
func (t *httpTarget) post(ctx context.Context, header http.Header, m mcp.Message) (*http.Response, error) {
	const envelope, key = 64, "Idempotency-Key"
	if _, set := header[key]; !set && isRepeatableMethod(m.Method) {
		header[key] = nil // a hint for net/http, which does not send the header
	}
	size := envelope + len(m.ID) + len(m.Method) + len(m.Params) + len(m.Result) + len(m.Error)
	return t.doAuthorized(ctx, http.MethodPost, header, m.Append(make([]byte, 0, size)))
}

// get opens an event stream. If last is not empty, the stream starts after the event with that ID.
func (t *httpTarget) get(ctx context.Context, header http.Header, last string) (*http.Response, error) {
	header.Del("Content-Type")
	header.Set("Accept", mediaTypeEvents)
	if last != "" {
		header.Set(mcp.HeaderLastEvent, last)
	}
	return t.doAuthorized(ctx, http.MethodGet, header, nil)
}

// doAuthorized sends a request and reads the header of the response. If there is a TokenSource, the request contains
// its access token. The error is a result of classifyHTTPError, or wraps an error of the TokenSource and concerns only
// this request.
func (t *httpTarget) doAuthorized(ctx context.Context, method string, header http.Header,
	body []byte) (*http.Response, error) {
	if t.tokens == nil {
		return t.doOnce(ctx, method, header, body)
	}
	token, err := t.tokens.Token(ctx)
	if err != nil {
		return nil, refusedMessageError{err} // not an unsentError, since another connection would not help
	}
	for first := method != http.MethodDelete; ; first = false { // the deletion of a session needs no new token
		if token != "" {
			header = header.Clone() // the first request may still use the header
			header.Set("Authorization", "Bearer "+token)
		}
		resp, err := t.doOnce(ctx, method, header, body)
		if err != nil || !first || resp.StatusCode != http.StatusUnauthorized &&
			resp.StatusCode != http.StatusForbidden {
			return resp, err
		}
		if token, err = t.replaceToken(ctx, token, resp); err != nil || token == "" {
			return resp, err
		}
	}
}

// replaceToken gets another token from the TokenSource after the server refused the token used with the response resp.
// If it returns "", there is no other token, and resp is the result of the request.
func (t *httpTarget) replaceToken(ctx context.Context, used string, resp *http.Response) (string, error) {
	body := readErrorBody(resp)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return t.tokens.ReplaceToken(ctx, used, resp.StatusCode, resp.Header, body)
}

// doOnce sends one request without retries.
func (t *httpTarget) doOnce(ctx context.Context, method string, header http.Header,
	body []byte) (*http.Response, error) {
	req := (&http.Request{Method: method, URL: t.url, Host: t.host, Header: header}).WithContext(ctx)
	if body != nil {
		// net/http recognises a bytes.Reader, and sends header and body in one packet.
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return nil, classifyHTTPError(err)
	}
	return resp, nil
}

func isSuccess(resp *http.Response) bool { return resp.StatusCode >= 200 && resp.StatusCode < 300 }

// mediaType returns the media type of a response in lower case, without parameters.
func mediaType(resp *http.Response) string {
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// readBody reads a whole body into buf and closes it. For more than max bytes it returns mcp.ErrTooLong.
func readBody(resp *http.Response, max int, buf *mcp.AnswerBuffer) ([]byte, error) {
	defer resp.Body.Close()
	if n := resp.ContentLength; n > 0 && n <= int64(max) {
		buf.Expect(int(n))
	}
	for {
		space, err := buf.Space()
		if err != nil {
			return nil, err
		}
		n, err := resp.Body.Read(space)
		buf.Commit(n)
		switch {
		case buf.Len() > max:
			err = mcp.ErrTooLong
		case err == io.EOF:
			return buf.Bytes()
		case err == nil:
			continue
		}
		buf.Drop()
		return nil, err
	}
}

// readErrorBody reads at most maxErrorBody bytes of an error response's body, and closes the body.
func readErrorBody(resp *http.Response) []byte {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // an incomplete body is sufficient
	_ = resp.Body.Close()
	return body
}

// drainBody reads the rest of a small body that is not needed, and closes the body, so that the connection can be
// reused.
func drainBody(resp *http.Response) {
	const most = 4 << 10
	if resp.ContentLength != 0 && mediaType(resp) != mediaTypeEvents {
		_, _ = io.CopyN(io.Discard, resp.Body, most)
	}
	_ = resp.Body.Close()
}
