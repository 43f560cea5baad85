package transport_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// drop ends the TCP connection under a response.
func drop(w http.ResponseWriter) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.Close()
	}
}

// dropAfter begins a response by hand and ends the connection.
func dropAfter(w http.ResponseWriter, text string) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_, _ = io.WriteString(c, text)
		_ = c.Close()
	}
}

// endless writes until the client has had enough.
func endless(w http.ResponseWriter, contentType, piece string) {
	w.Header().Set("Content-Type", contentType)
	for {
		if _, err := io.WriteString(w, piece); err != nil {
			return
		}
	}
}

// An answering is a way to answer a request, and what a Do makes of it.
type answering struct {
	name string
	say  func(w http.ResponseWriter, m mcp.Message)
	want httpReply
}

var (
	fine = httpReply{Answer: `{"ok":true}`}
	lost = httpReply{Is: []string{"lost"}}
	bare = httpReply{Is: []string{"status"}} // a status without an answer
)

// with answers in good order.
func with(status int, contentType, body string) func(http.ResponseWriter, mcp.Message) {
	return func(w http.ResponseWriter, m mcp.Message) { say(w, status, contentType, m, body) }
}

func bodies() []answering {
	return []answering{
		{"JSON", with(200, plain, answer), fine},
		{"JSON with a charset", with(200, "Application/JSON; charset=utf-8", answer), fine},
		{"no content type", with(200, "", answer), fine},
		{"id as a string", with(200, plain, strings.Replace(answer, "$", `"$"`, 1)), fine},
		{"no jsonrpc", with(200, plain, `{"id":$,"result":{"ok":true}}`), fine},
		{"a batch", with(200, plain, `[{"jsonrpc":"2.0","method":"notifications/x"},`+answer+`]`), fine},
		{"another's answer", with(200, plain, `{"jsonrpc":"2.0","id":77,"result":{}}`), lost},
		{"HTML", with(200, "text/html", "<p>sign in</p>"), lost},
		{"HTML that says it is JSON", with(200, plain, "<p>sign in</p>"), lost},
		{"nothing", with(202, "", ""), lost},
		{"a short body", func(w http.ResponseWriter, _ mcp.Message) {
			dropAfter(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"jsonrpc\"")
		}, lost},
		{"no response", func(w http.ResponseWriter, _ mcp.Message) { drop(w) }, lost},
		{"no HTTP", func(w http.ResponseWriter, _ mcp.Message) { dropAfter(w, "220 smtp ready\r\n") }, lost},
		{"a body without end", func(w http.ResponseWriter, _ mcp.Message) {
			endless(w, plain,
				strings.Repeat(" ", 1<<16))
		}, httpReply{Is: []string{"lost", "too long"}}},
		{"a lie about the length", func(w http.ResponseWriter, _ mcp.Message) {
			dropAfter(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9000000000000000000\r\n\r\n{}")
		}, lost},
		{"an event without end", func(w http.ResponseWriter, _ mcp.Message) {
			endless(w, events, "data: "+strings.Repeat("x", 1<<16)+"\n")
		}, httpReply{Is: []string{"lost", "too long"}}},
		{"comments without end", func(w http.ResponseWriter, _ mcp.Message) {
			endless(w, events, strings.Repeat(": \n",
				1<<14))
		}, httpReply{Is: []string{"lost", "too long"}}},
	}
}

func streams() []answering {
	return []answering{
		{"events", with(200, events, "data: "+answer+"\n\n"), fine},
		{"events with CRLF, comments and a byte order mark",
			with(200, events, "\xef\xbb\xbf: hi\r\n\r\nevent: message\r\ndata: "+answer+"\r\n\r\n"), fine},
		{"data on several lines", with(200, events, "data: {\"id\":$,\ndata: \"result\":{\"ok\":true}}\n\n"), fine},
		{"events of other names", with(200, events, "event: ping\ndata: {}\n\ndata: "+answer+"\n\n"), fine},
		{"events that are no messages", with(200, events, "data: hello\n\ndata: "+answer+"\n\n"), fine},
		{"a batch as an event", with(200, events, "data: [{\"method\":\"x\"},"+answer+"]\n\n"), fine},
		{"others' answers among the events", with(200, events, "data: {\"id\":77,\"result\":{}}\n\ndata: "+
			answer+"\n\n"), fine},
		{"events without an answer", with(200, events, "data: {\"method\":\"x\"}\n\n"), lost},
		{"half an event", with(200, events, "data: "+answer), lost},
		{"events that break off", func(w http.ResponseWriter, _ mcp.Message) {
			dropAfter(w, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: x\n\n\r\n")
		}, lost},
	}
}

func refusals() []answering {
	const refusal = `{"jsonrpc":"2.0","id":$,"error":{"code":-32601,"message":"no"}}`
	refused := httpReply{Answer: `{"code":-32601,"message":"no"}`}
	noID := strings.ReplaceAll(refusal, "$", "null")
	return []answering{
		{"400 with an error", with(400, plain, refusal), refused},
		{"400 with an error without id", with(400, plain, noID), refused},
		{"404 with an error", with(404, plain, refusal), refused},
		{"500 with an error", with(500, plain, refusal), refused},
		{"400 with another's error", with(400, plain, `{"jsonrpc":"2.0","id":77,"error":{"code":1}}`), bare},
		{"400 with some other JSON", with(400, plain, `{"error":{"code":400,"message":"bad"}}`), bare},
		{"400 with text", with(400, "text/plain", "bad"), bare},
		{"401 with an error", with(401, plain, refusal), bare},
		{"403", with(403, plain, ""), bare},
		{"429 with an error", with(429, plain, refusal), bare},
		{"500", with(500, "text/plain", "oops"), httpReply{Is: []string{"status", "lost"}}},
		{"503", with(503, "text/plain", "busy"), bare},
		{"304", with(304, "", ""), bare},
		{"a redirect to nowhere", with(302, "", ""), bare},
	}
}

// TestAnswers goes through what servers answer a request with, in both generations.
func TestAnswers(t *testing.T) { overBoth(t, testAnswers) }

func testAnswers(t *testing.T) {
	for _, tt := range slices.Concat(bodies(), streams(), refusals()) {
		for _, generation := range []string{"legacy", "modern"} {
			t.Run(tt.name+" "+generation, func(t *testing.T) {
				post := func(w http.ResponseWriter, r *http.Request) { tt.say(w, read(t, r)) }
				h := dial(t, transport.HTTPOptions{Client: serve(t, legacy(t, post, nil)), MaxBody: 1 << 20})
				params := `{` + modern + `}`
				if generation == "legacy" {
					greet(t, h)
					params = `{}`
				}
				got, err := do(t, h, mcp.MethodToolsCall, params, nil)
				if diff := cmp.Diff(tt.want, got, sorted); diff != "" {
					t.Errorf("%v %s", err, diff)
				}
				if h.Err() != nil {
					t.Errorf("the connection ended: %v", h.Err())
				}
			})
		}
	}
}
