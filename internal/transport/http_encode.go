package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// maxPlainBody is the size limit of a body that is sent with its header in one write. A server that answers before it
// has read a larger body could block the write.
const maxPlainBody = 64 << 10

// isPlainRequest reports whether a request can be encoded by requestMessage. net/http sends, or refuses, all others.
func isPlainRequest(req *http.Request) bool {
	u := req.URL
	if u == nil || u.Opaque != "" || u.Scheme != "http" && u.Scheme != "https" || req.Close || len(req.TransferEncoding) > 0 ||
		len(req.Trailer) > 0 || req.ContentLength > maxPlainBody ||
		req.ContentLength <= 0 && req.Body != nil && req.Body != http.NoBody {
		return false
	}
	switch req.Method {
	case http.MethodPost, http.MethodGet, http.MethodDelete:
	default:
		return false
	}
	return isPlainHost(u.Host) && (req.Host == "" || isPlainHost(req.Host)) && isPlainHeader(req.Header)
}

// isPlainHost reports whether a host needs no conversion before it is sent or resolved.
func isPlainHost(host string) bool {
	return host != "" && httpguts.ValidHostHeader(host) && !strings.ContainsFunc(host, func(r rune) bool {
		return r >= 0x80 || r == '%' || r >= 'A' && r <= 'Z'
	})
}

// isPlainHeader reports whether a header can be sent as it is, and does not change the framing of the message or the
// use of the connection.
func isPlainHeader(header http.Header) bool {
	for name, values := range header {
		switch name {
		case "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Connection", "Te", "Trailer",
			"Transfer-Encoding", "Upgrade":
			return false
		}
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return false
			}
		}
	}
	return true
}

// A requestMessage is the encoded form of a request: its header and its body.
type requestMessage struct {
	bytes []byte
	body  int // the index of the body
}

// encode encodes a request that isPlainRequest accepted, and closes its body.
func (m *requestMessage) encode(req *http.Request) error {
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	b := append(append(append(m.bytes[:0], req.Method...), ' '), req.URL.RequestURI()...)
	b = append(append(append(b, " HTTP/1.1\r\nHost: "...), host...), "\r\n"...)
	if _, set := req.Header["User-Agent"]; !set {
		b = append(b, "User-Agent: Go-http-client/1.1\r\n"...)
	}
	for name, values := range req.Header {
		for _, value := range values {
			if name == "User-Agent" && value == "" {
				continue // an empty value means that none is sent
			}
			value = strings.Trim(value, " \t")
			b = append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
		}
	}
	if req.ContentLength > 0 || req.Method == http.MethodPost {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), req.ContentLength, 10), "\r\n"...)
	}
	b = append(b, "\r\n"...)
	m.body = len(b)
	var err error
	if req.Body != nil {
		b, err = appendBody(b, req.Body, int(req.ContentLength))
	}
	m.bytes = b
	return err
}

// appendBody appends a body of n bytes, and closes it.
func appendBody(b []byte, body io.ReadCloser, n int) ([]byte, error) {
	defer body.Close()
	start := len(b)
	b = slices.Grow(b, n+1)[:start+n+1]
	got, err := io.ReadFull(body, b[start:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return b[:start], fmt.Errorf("read the request body: %w", err)
	}
	if got != n {
		return b[:start], errors.New("the request body has another length than ContentLength")
	}
	return b[:start+n], nil
}

// rewind returns the request with a new body, since encode has read the first one.
func (m *requestMessage) rewind(req *http.Request) *http.Request {
	if req.ContentLength <= 0 {
		return req
	}
	again := *req
	again.Body = io.NopCloser(bytes.NewReader(bytes.Clone(m.bytes[m.body:])))
	return &again
}

// A messagePool reuses the memory of requests.
type messagePool struct{ pool sync.Pool }

func (p *messagePool) get() *requestMessage {
	if m, ok := p.pool.Get().(*requestMessage); ok {
		return m
	}
	return &requestMessage{bytes: make([]byte, 0, 2<<10)}
}

func (p *messagePool) put(m *requestMessage) { p.pool.Put(m) }
