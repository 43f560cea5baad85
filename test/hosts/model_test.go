//go:build hosts

package hosts

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A model answers the host's first request with a call of one tool, and the one that has a tool's output with a text.
// It is npm's aimock behind a door of ours, which keeps the requests as the host wrote them.
type model struct {
	url  string // what the host is told
	mock string // aimock's own
	tool string // as the model knows it
	word string // what the tool is to say; nobody else knows it

	mu   sync.Mutex
	sent [][]byte
}

// done is the text a turn ends with.
const done = "The tool has spoken."

// startModel starts a model that calls tool, of a namespace where one is given.
func startModel(t *testing.T, h *home, namespace, tool string) *model {
	t.Helper()
	m := &model{tool: tool, word: "w" + strings.ToLower(rand.Text())}
	h.write(t, "fixtures.json", object{"fixtures": []object{
		{"match": object{"userMessage": m.word, "hasToolResult": false}, "response": object{"toolCalls": []object{
			{"name": tool, "arguments": `{"message":"` + m.word + `"}`},
		}}},
		{"match": object{"hasToolResult": true}, "response": object{"content": done}},
	}})
	m.mock = mock(t, h)
	door := httptest.NewServer(m.door(t, namespace))
	t.Cleanup(door.Close)
	m.url = door.URL
	return m
}

// mock starts aimock on a free port and gives its URL.
func mock(t *testing.T, h *home) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), node, module(t, "@copilotkit/aimock/dist/cli.js"),
		"--port", "0", "--fixtures", h.dir+"/fixtures.json", "--strict", "--validate-on-load")
	cmd.Env, cmd.Dir = h.env, h.dir
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = cmd.Stdout
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("start aimock: %v", err)
	}
	listens, said, read := make(chan string, 1), new(strings.Builder), make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(io.TeeReader(stdout, said)); lines.Scan(); {
			if _, after, ok := strings.Cut(lines.Text(), "listening on "); ok {
				listens <- after
			}
		}
	}()
	t.Cleanup(func() { // t.Context is done by now, and the process killed
		<-read
		cmd.Wait()
		if t.Failed() {
			t.Logf("aimock said:\n%s", said)
		}
	})
	select {
	case at := <-listens:
		return at
	case <-read:
		t.Fatal("aimock ended before it listened")
	case <-time.After(30 * time.Second):
		t.Fatal("aimock does not listen")
	}
	return ""
}

// output is what server-everything's echo answers.
func (m *model) output() string { return "Echo: " + m.word }

// door forwards to aimock. A namespace is put into each function call of an answer: Codex requires it there, and aimock
// has no member for it.
func (m *model) door(t *testing.T, namespace string) http.Handler {
	target, err := url.Parse(m.mock)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			if namespace != "" {
				call := `"type":"function_call",`
				body = bytes.ReplaceAll(body, []byte(call), []byte(call+`"namespace":"`+namespace+`",`))
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return err
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		m.mu.Lock()
		m.sent = append(m.sent, body)
		m.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})
}

// An exchange is what the model's journal and the door have of one request.
type exchange struct {
	Path    string
	Status  int
	Offered bool   // the tool is among those the host offers
	Last    string // who spoke last
	Output  bool   // and it is the tool, with its output
}

// checkTurn holds the journal to a whole turn: the host offers the tool, and sends its output back.
func (m *model) checkTurn(t *testing.T, path string) {
	t.Helper()
	want := []exchange{
		{Path: path, Status: http.StatusOK, Offered: true, Last: "user"},
		{Path: path, Status: http.StatusOK, Offered: true, Last: "tool", Output: true},
	}
	if diff := cmp.Diff(want, m.exchanges(t)); diff != "" {
		t.Errorf("the model's journal (-want +got):\n%s", diff)
	}
	t.Logf("the first request has %d bytes", len(m.sent[0]))
}

func (m *model) exchanges(t *testing.T) []exchange {
	t.Helper()
	res, err := http.Get(m.mock + "/__aimock/journal")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var journal []struct {
		Path     string
		Response struct{ Status int }
		Body     struct {
			Messages []struct {
				Role    string
				Content any
			}
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&journal); err != nil {
		t.Fatalf("aimock's journal: %v", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(journal) != len(m.sent) || len(journal) == 0 {
		t.Fatalf("%d requests came to the door and %d to aimock", len(m.sent), len(journal))
	}
	var all []exchange
	for i, entry := range journal {
		e := exchange{Path: entry.Path, Status: entry.Response.Status, Offered: offers(m.sent[i], m.tool)}
		if n := len(entry.Body.Messages); n > 0 {
			last := entry.Body.Messages[n-1]
			content, _ := json.Marshal(last.Content)
			e.Last, e.Output = last.Role, last.Role == "tool" && bytes.Contains(content, []byte(m.output()))
		}
		all = append(all, e)
	}
	return all
}

// offers says whether a request has a tool of this name. Each API has its tools one or two levels down.
func offers(request []byte, tool string) bool {
	var body struct{ Tools any }
	if json.Unmarshal(request, &body) != nil {
		return false
	}
	var has func(any) bool
	has = func(v any) bool {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				if has(item) {
					return true
				}
			}
		case object:
			if v["name"] == tool {
				return true
			}
			return has(v["tools"]) || has(v["function"]) || has(v["functionDeclarations"])
		}
		return false
	}
	return has(body.Tools)
}
