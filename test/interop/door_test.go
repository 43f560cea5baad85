//go:build peers

package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// An era is a protocol generation, by the revision that stands for it.
type era string

const (
	legacy era = "2025-11-25"
	modern era = "2026-07-28"
)

// A door carries one request in and its response out, as bytes: what an SDK would drop or repair stays to be seen.
type door interface {
	// exchange sends a message; it gives the message that answers it, or nil for a notification.
	exchange(ctx context.Context, m message) (*message, error)
	speaks() era
}

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  map[string]any  `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// caller makes the calls of one test through a door.
type caller struct {
	t    *testing.T
	door door
	caps map[string]any
	last int
}

// enter opens a door: the legacy handshake, or discovery.
func enter(t *testing.T, d door, caps map[string]any) *caller {
	t.Helper()
	if caps == nil {
		caps = map[string]any{}
	}
	c := &caller{t: t, door: d, caps: caps}
	if d.speaks() == modern {
		c.call("server/discover", nil)
		return c
	}
	c.call("initialize", map[string]any{"protocolVersion": string(legacy), "capabilities": caps,
		"clientInfo": clientInfo()})
	c.send(message{JSONRPC: "2.0", Method: "notifications/initialized"})
	return c
}

func clientInfo() map[string]any { return map[string]any{"name": "peers", "version": "1"} }

// call sends a request and gives its result object; any error ends the test.
func (c *caller) call(method string, params map[string]any) json.RawMessage {
	c.t.Helper()
	sent := map[string]any{}
	for k, v := range params {
		sent[k] = v
	}
	if c.door.speaks() == modern {
		sent["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    string(modern),
			"io.modelcontextprotocol/clientInfo":         clientInfo(),
			"io.modelcontextprotocol/clientCapabilities": c.caps,
		}
	}
	c.last++
	answer := c.send(message{JSONRPC: "2.0", ID: c.last, Method: method, Params: sent})
	if answer == nil || answer.Error != nil || answer.Result == nil {
		c.t.Fatalf("%s %v: got %+v", method, params, answer)
	}
	return answer.Result
}

func (c *caller) send(m message) *message {
	c.t.Helper()
	answer, err := c.door.exchange(limit(c.t, time.Minute), m)
	if err != nil {
		c.t.Fatalf("%s: %v", m.Method, err)
	}
	return answer
}

// list gives all items of a list method, page after page.
func (c *caller) list(method, member string) []json.RawMessage {
	c.t.Helper()
	var all []json.RawMessage
	for cursor := ""; ; {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		var page map[string]json.RawMessage
		var items []json.RawMessage
		decode(c.t, c.call(method, params), &page)
		decode(c.t, page[member], &items)
		all = append(all, items...)
		if page["nextCursor"] == nil {
			return all
		}
		decode(c.t, page["nextCursor"], &cursor)
	}
}

// tools gives the definitions of all tools by name.
func (c *caller) tools() map[string]json.RawMessage {
	c.t.Helper()
	byName := map[string]json.RawMessage{}
	for _, item := range c.list("tools/list", "tools") {
		name := nameOf(c.t, item)
		if byName[name] != nil {
			c.t.Errorf("%s is listed twice", name)
		}
		byName[name] = item
	}
	return byName
}

func nameOf(t *testing.T, item json.RawMessage) string {
	t.Helper()
	var named struct{ Name string }
	decode(t, item, &named)
	return named.Name
}

func decode(t *testing.T, raw json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
}

// listed waits until every one of these tools is listed. A server that was never tried before may appear later.
func listed(t *testing.T, d door, names ...string) *caller {
	t.Helper()
	c := enter(t, d, nil)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for deadline := limit(t, time.Minute); ; {
		tools := c.tools()
		var missing []string
		for _, name := range names {
			if tools[name] == nil {
				missing = append(missing, name)
			}
		}
		if len(missing) == 0 {
			return c
		}
		select {
		case <-again.C:
		case <-deadline.Done():
			t.Fatalf("never listed: %v", missing)
		}
	}
}

// warmed is drawbridge serve over these rows, with a store that remembers a listing with these tools: what it lists
// first is complete.
func warmed(t *testing.T, rows []row, names ...string) *exec.Cmd {
	t.Helper()
	cmd := serveCommand(t, rows)
	once := exec.Command(cmd.Path, cmd.Args[1:]...)
	once.Dir, once.Env = cmd.Dir, cmd.Env
	listed(t, openStdio(t, once, legacy), names...)
	return cmd
}

// httpDoor posts to one URL.
type httpDoor struct {
	url     string
	era     era
	session string
}

func (d *httpDoor) speaks() era { return d.era }

func (d *httpDoor) exchange(ctx context.Context, m message) (*message, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	d.headers(req.Header, m)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		d.session = id
	}
	switch {
	case m.ID == 0 && res.StatusCode/100 == 2:
		return nil, nil
	case strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream"):
		return answerIn(res.Body, m.ID)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	answer := new(message)
	if err := json.Unmarshal(text, answer); err != nil {
		return nil, fmt.Errorf("%s: %s", res.Status, text)
	}
	return answer, nil
}

func (d *httpDoor) headers(h http.Header, m message) {
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if m.Method != "initialize" {
		h.Set("Mcp-Protocol-Version", string(d.era))
	}
	if d.session != "" {
		h.Set("Mcp-Session-Id", d.session)
	}
	if d.era != modern {
		return
	}
	h.Set("Mcp-Method", m.Method)
	for _, member := range []string{"name", "uri"} {
		if value, ok := m.Params[member].(string); ok {
			h.Set("Mcp-Name", value)
		}
	}
}

// answerIn finds the response to id in a stream of events, and passes over what else is said there.
func answerIn(stream io.Reader, id int) (*message, error) {
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadString('\n')
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			m := new(message)
			if json.Unmarshal([]byte(data), m) == nil && m.ID == id && m.Method == "" {
				return m, nil
			}
		}
		if err != nil {
			return nil, fmt.Errorf("the stream ended without an answer: %w", err)
		}
	}
}

// stdioDoor is a child process.
type stdioDoor struct {
	*program
	era   era
	lines chan string
}

// openStdio starts a server on standard input and output.
func openStdio(t *testing.T, cmd *exec.Cmd, e era) *stdioDoor {
	t.Helper()
	d := &stdioDoor{era: e, lines: make(chan string, 1024)}
	d.program = start(t, cmd, func(line string) { d.lines <- line }, nil)
	return d
}

func (d *stdioDoor) speaks() era { return d.era }

func (d *stdioDoor) exchange(ctx context.Context, m message) (*message, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if _, err := d.in.Write(append(body, '\n')); err != nil || m.ID == 0 {
		return nil, err
	}
	for {
		select {
		case line := <-d.lines:
			answer := new(message)
			if json.Unmarshal([]byte(line), answer) == nil && answer.ID == m.ID && answer.Method == "" {
				return answer, nil
			}
		case <-d.gone:
			return nil, io.ErrUnexpectedEOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
