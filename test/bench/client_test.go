//go:build bench

package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// A client makes one call after the other and costs as little as it can, so that what is measured is the other side. It
// is the same client for Drawbridge and for the controls.
type client interface {
	// call sends a prepared request and gives the response's JSON-RPC message or event stream, good until the next
	// call.
	call(r request) ([]byte, error)
	io.Closer
}

// A request is a JSON-RPC request without its id, and what its answer must contain.
type request struct {
	method, name string // for the headers that mirror the body
	body         []byte // everything after the id: `,"method":…}`
	want         []byte
}

const revision = "2026-07-28"

// meta is what every request of the modern generation carries.
const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + revision + `",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// toolCall prepares a tools/call.
func toolCall(tool, arguments, want string) request {
	body := fmt.Sprintf(`,"method":"tools/call","params":{%s,"name":%q,"arguments":%s}}`, meta, tool, arguments)
	return request{"tools/call", tool, []byte(body), []byte(want)}
}

// small is the call with 64 bytes of payload, large the one with so many bytes in its result. A prefix makes the tool's
// name behind Drawbridge.
func small(prefix string) request { return says(prefix, strings.Repeat("0123456789abcdef", 4)) }

// freshWords and freshSentences give calls like small, each with 64 bytes in its payload that no other has: one word
// or several, which whoever looks at results looks at longer.
func freshWords(prefix string) func() request {
	return fresh(prefix, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789%06x")
}

func freshSentences(prefix string) func() request {
	return fresh(prefix, "Build %06d of release 4.2 passed: 318 tests in 41 s, none failed")
}

func fresh(prefix, format string) func() request {
	n := 0
	return func() request {
		n++
		return says(prefix, fmt.Sprintf(format, n))
	}
}

func says(prefix, text string) request {
	return toolCall(prefix+"echo", `{"text":"`+text+`"}`, text)
}

func large(prefix string, size int) request {
	return toolCall(prefix+"blob", fmt.Sprintf(`{"bytes":%d}`, size), strings.Repeat("x", size))
}

func toolsList(cursor string) request {
	if cursor != "" {
		cursor = fmt.Sprintf(`,"cursor":%q`, cursor)
	}
	return request{"tools/list", "", []byte(`,"method":"tools/list","params":{` + meta + cursor + `}}`),
		[]byte(`"tools"`)}
}

// legacy is the same request for a legacy session, which says who it is once.
func (r request) legacy() request {
	r.body = bytes.Replace(r.body, []byte(meta+","), nil, 1)
	r.body = bytes.Replace(r.body, []byte(meta), nil, 1)
	return r
}

var errAnswer = errors.New("not the answer that was wanted")

func (r request) check(answer []byte) error {
	if !bytes.Contains(answer, r.want) || bytes.Contains(answer, []byte(`"isError":true`)) {
		return fmt.Errorf("%s %s: %w: %.200s", r.method, r.name, errAnswer, answer)
	}
	return nil
}

// httpClient is one connection that is kept.
type httpClient struct {
	net.Conn
	in         *bufio.Reader
	host, path string
	session    string // of a legacy session
	legacy     bool
	begun      bool // initialize was answered
	redials    bool
	id         int
	body, out  []byte
	answer     bytes.Buffer
}

func dial(address string) (*httpClient, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return nil, err
	}
	return &httpClient{Conn: conn, in: bufio.NewReaderSize(conn, 64<<10), host: u.Host, path: u.Path}, nil
}

func (c *httpClient) call(r request) ([]byte, error) {
	c.id++
	c.body = append(strconv.AppendInt(append(c.body[:0], `{"jsonrpc":"2.0","id":`...), int64(c.id), 10), r.body...)
	res, err := c.post(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s: %.200s", r.method, r.name, res.Status, c.answer.Bytes())
	}
	return c.answer.Bytes(), r.check(c.answer.Bytes())
}

// post sends c.body and reads the whole answer.
func (c *httpClient) post(r request) (*http.Response, error) {
	res, err := c.send(r)
	return c.read(res, err)
}

// send sends c.body and reads the head of the answer.
func (c *httpClient) send(r request) (*http.Response, error) {
	c.out = fmt.Appendf(c.out[:0], "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n", c.path, c.host, len(c.body))
	switch {
	case !c.legacy:
		c.out = append(c.out, "Mcp-Protocol-Version: "+revision+"\r\nMcp-Method: "+r.method+"\r\n"...)
		if r.name != "" {
			c.out = append(c.out, "Mcp-Name: "+r.name+"\r\n"...)
		}
	case c.begun:
		c.out = append(c.out, "Mcp-Protocol-Version: 2025-11-25\r\n"...)
		if c.session != "" {
			c.out = append(c.out, "Mcp-Session-Id: "+c.session+"\r\n"...)
		}
	}
	c.out = append(append(c.out, "\r\n"...), c.body...)
	return c.head(c.out)
}

// head writes a request and reads the head of its answer. Some servers close a connection that was idle for seconds:
// a client that redials then sends the request on another one.
func (c *httpClient) head(out []byte) (*http.Response, error) {
	res, err := c.headOnce(out)
	if err == nil || !c.redials {
		return res, err
	}
	conn, failed := net.Dial("tcp", c.host)
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	c.Close()
	c.Conn, c.in = conn, bufio.NewReaderSize(conn, 64<<10)
	return c.headOnce(out)
}

func (c *httpClient) headOnce(out []byte) (*http.Response, error) {
	if _, err := c.Write(out); err != nil {
		return nil, err
	}
	return http.ReadResponse(c.in, nil)
}

// read reads the rest of an answer.
func (c *httpClient) read(res *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	c.answer.Reset()
	if _, err := c.answer.ReadFrom(res.Body); err != nil {
		return nil, err
	}
	return res, res.Body.Close()
}

// open begins a legacy session on the connection, and end deletes it.
func (c *httpClient) open() error {
	c.legacy = true
	c.body = []byte(
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	res, err := c.post(request{})
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || !bytes.Contains(c.answer.Bytes(), []byte(`"protocolVersion"`)) {
		return fmt.Errorf("initialize: %s: %.200s", res.Status, c.answer.Bytes())
	}
	c.begun = true
	c.session = res.Header.Get("Mcp-Session-Id") // servers without state have none
	c.body = []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if res, err = c.post(request{}); err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("initialized: %s", res.Status)
	}
	return err
}

func (c *httpClient) end() error {
	res, err := c.read(c.head(fmt.Appendf(nil,
		"DELETE %s HTTP/1.1\r\nHost: %s\r\nMcp-Session-Id: %s\r\nMcp-Protocol-Version: 2025-11-25\r\n\r\n", c.path,
		c.host, c.session)))
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("delete the session: %s", res.Status)
	}
	return err
}

// stdioClient talks to a child process.
type stdioClient struct {
	in  io.Writer
	out *bufio.Reader
	id  int
	buf []byte
	all []byte
}

func (c *stdioClient) call(r request) ([]byte, error) {
	c.id++
	c.buf = append(strconv.AppendInt(append(c.buf[:0], `{"jsonrpc":"2.0","id":`...), int64(c.id), 10), r.body...)
	if _, err := c.in.Write(append(c.buf, '\n')); err != nil {
		return nil, err
	}
	for {
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		if bytes.Contains(line, []byte(`"method"`)) && !bytes.Contains(line, []byte(`"result"`)) {
			continue // a notification
		}
		return line, r.check(line)
	}
}

// line reads a line of any length without allocating for it again.
func (c *stdioClient) line() ([]byte, error) {
	c.all = c.all[:0]
	for {
		part, err := c.out.ReadSlice('\n')
		c.all = append(c.all, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return c.all, err
		}
	}
}

// open begins a legacy session, with the client's capabilities.
func (c *stdioClient) open(capabilities string) error {
	hello := `,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities +
		`,"clientInfo":{"name":"bench","version":"1"}}}`
	if _, err := c.call(request{method: "initialize", body: []byte(hello)}); err != nil {
		return err
	}
	_, err := c.in.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
	return err
}

func (c *stdioClient) Close() error { return nil }
