//go:build bench

package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

// byHand is a server of the stateful generation without a library: what it answers are bytes that nothing has decoded.
// It serves standard input and output, or with "http" over HTTP, where the tool events answers with an event stream.
func byHand(args []string) error {
	if len(args) > 0 && args[0] == "http" {
		return serveHTTP(http.HandlerFunc(byHandHTTP))
	}
	out := bufio.NewWriter(os.Stdout)
	for lines := bufio.NewReaderSize(os.Stdin, 64<<10); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		if answer := byHandAnswer(line); answer != "" {
			out.WriteString(answer + "\n")
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// A handQuestion is a request as byHand reads it.
type handQuestion struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

// byHandAnswer is the answer to a message, or empty to a notification.
func byHandAnswer(message []byte) string {
	var q handQuestion
	if err := json.Unmarshal(message, &q); err != nil || q.ID == nil {
		return ""
	}
	var named struct{ Name string }
	_ = json.Unmarshal(q.Params, &named) // whoever has no params has no name
	result, known := handResults()[q.Method]
	if q.Method == "tools/call" || q.Method == "prompts/get" {
		result, known = handResults()[q.Method+" "+named.Name]
	}
	if named.Name == "reflect" {
		text, _ := json.Marshal(string(q.Params)) // a text has a form as JSON
		result, known = fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text), true
	}
	if !known {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, q.ID)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result)
}

func byHandHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var q struct {
		ID     json.RawMessage
		Params struct {
			Name      string
			Arguments struct{ Bytes int }
		}
	}
	if json.Unmarshal(body, &q) == nil && q.Params.Name == "events" {
		writeEvents(w, q.ID, q.Params.Arguments.Bytes)
		return
	}
	answer := byHandAnswer(body)
	if answer == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, answer)
}

// writeEvents answers with one event of so many bytes.
func writeEvents(w http.ResponseWriter, id json.RawMessage, bytes int) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, `event: message`+"\n"+`data: {"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
	for part := strings.Repeat("x", 64<<10); bytes > 0; bytes -= len(part) {
		if _, err := io.WriteString(w, part[:min(bytes, len(part))]); err != nil {
			return // the client has left
		}
	}
	io.WriteString(w, `"}]}}`+"\n\n")
}

// handCalls are tools of byHand with their results: each has something that a gateway may lose.
var handCalls = [][2]string{
	{"numbers", `{"content":[{"type":"text","text":"n"}],"structuredContent":{"big":9007199254740995,"tiny":1e-400,"plain":2.50},"isError":false}`},
	{"annotated", `{"content":[{"type":"text","text":"","annotations":{"audience":["assistant"],"priority":0,"own":2},"_meta":{"n":9007199254740995},"own":3}]}`},
	{"strange", `{"content":[{"type":"hologram","data":"AAE="}]}`},
	{"unpadded", `{"content":[{"type":"audio","data":"UklGRg","mimeType":"audio/wav"}]}`},
	{"linked", `{"content":[{"type":"resource_link","uri":"memo:///1","name":"","size":0,"icons":[{"src":"data:,"}]}]}`},
	{"embedded", `{"content":[{"type":"resource","resource":{"uri":"memo:///1","mimeType":"text/plain","text":""}}]}`},
	{"bare", `{"structuredContent":{"only":true}}`},
	{"members", `{"content":[],"task":{"taskId":"7"},"own-member":[2],"_meta":{"example.org/a":{"b":1}}}`},
	{"nothing", `{"content":[],"structuredContent":null}`},
	{"list", `{"content":[],"structuredContent":[2,1]}`},
	{"markup", `{"content":[{"type":"text","text":"<b>&\u2029"}]}`},
	{"refused", `{"content":[{"type":"text","text":"no","own":1}],"isError":true,"structuredContent":{"code":9007199254740995}}`},
}

// handResults are the results of byHand's methods, and of tools and prompts by their names.
var handResults = sync.OnceValue(func() map[string]string {
	results := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{}},` +
			`"serverInfo":{"name":"byhand","version":"1"}}`,
		"ping": `{}`,
		"resources/list": `{"resources":[{"uri":"memo:///1","name":"memo","title":"handmade","size":0,` +
			`"mimeType":"text/plain","annotations":{"priority":0},"icons":[{"src":"data:,"}],"_meta":{"n":1},"own":1}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"memo:///{n}","name":"memos",` +
			`"title":"handmade","icons":[{"src":"data:,"}],"own":1}]}`,
		"resources/read": `{"contents":[{"uri":"memo:///1","mimeType":"text/plain","text":"","_meta":{"a":{"b":{}}},"own":1}]}`,
		"prompts/list": `{"prompts":[{"name":"hello","title":"handmade","arguments":[{"name":"who","title":"Who",` +
			`"required":false,"own":1}],"icons":[{"src":"data:,"}],"_meta":{"n":1}}]}`,
		"prompts/get hello": `{"description":"","messages":[{"role":"user","content":{"type":"text","text":"hi"},"own":1}]}`,
	}
	tools := []string{
		`{"name":"whole","title":"handmade","description":"d","inputSchema":{"type":"object","properties":{"z":` +
			`{"type":"integer","maximum":9007199254740995},"a":{"type":"string"}},"x-own":1},"annotations":` +
			`{"title":"t","readOnlyHint":true,"ownHint":true},"execution":{"taskSupport":"optional"},` +
			`"icons":[{"src":"data:,","mimeType":"image/png","sizes":["32x32"],"theme":"light"}],` +
			`"_meta":{"example.org/n":9007199254740995},"own":{"k":1}}`,
		`{"name":"anything","title":"handmade","description":"d","inputSchema":{"type":"object","properties":{"v":true}},` +
			`"annotations":{"readOnlyHint":true,"openWorldHint":true}}`,
	}
	names := []string{"reflect", "events"}
	for _, call := range handCalls {
		names = append(names, call[0])
		results["tools/call "+call[0]] = call[1]
	}
	for _, name := range names {
		tools = append(tools, `{"name":"`+name+`","description":"d","inputSchema":{"type":"object"},`+
			`"annotations":{"readOnlyHint":true}}`)
	}
	results["tools/list"] = `{"tools":[` + strings.Join(tools, ",") + `],"own":1}`
	return results
})
