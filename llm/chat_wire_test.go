package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/llm"
	"github.com/rogpeppe/go-internal/txtar"
)

const chatKey = "sk-ant-very-secret-0123456789"

// A memoryNet is a network of one server in memory, so that a test may run in a bubble with its own clock.
type memoryNet struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (n *memoryNet) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *memoryNet) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

func (n *memoryNet) Addr() net.Addr { return &net.TCPAddr{} }

func (n *memoryNet) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case n.conns <- there:
		return here, nil
	case <-n.closed:
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A sentRequest is a request that a chatServer received.
type sentRequest struct {
	path   string
	header http.Header
	body   string
	at     time.Time
}

// A reply writes one response.
type reply func(w http.ResponseWriter, r *http.Request)

// A chatServer is a provider. It answers each request with the next reply, and the last one again and again. The list of
// models is always answered.
type chatServer struct {
	t      *testing.T
	kind   string
	files  map[string]string
	models *llm.ChatModels
	mu     sync.Mutex
	got    []sentRequest
	todo   []reply
}

// serveChat starts a provider of a kind, and opens its models over real HTTP in memory.
func serveChat(t *testing.T, kind string, todo ...reply) *chatServer {
	t.Helper()
	return serveChatWith(t, kind, nil, todo...)
}

// serveChatWith is serveChat with a setting of the provider's search for tools.
func serveChatWith(t *testing.T, kind string, toolSearch *bool, todo ...reply) *chatServer {
	t.Helper()
	s := &chatServer{t: t, kind: kind, files: chatFiles(t, kind), todo: todo}
	network := &memoryNet{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: s}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(network)
	}()
	transport := &http.Transport{DialContext: network.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
	models, err := llm.OpenChatModels(llm.ChatOptions{
		Providers: []config.ModelProvider{{Name: "p", Kind: kind, BaseURL: "http://models.internal", ToolSearch: toolSearch,
			Key:     config.SecretRef{Parts: []config.ValuePart{{Text: chatKey}}},
			Headers: []config.SecretHeader{{Name: "X-Team", Value: config.SecretRef{Parts: []config.ValuePart{{Text: "blue"}}}}}}},
		LookupEnv: func(string) (string, bool) { return "", false }, Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.models = models
	return s
}

// chatFiles returns the recorded answers of a kind.
func chatFiles(t testing.TB, kind string) map[string]string {
	t.Helper()
	a, err := txtar.ParseFile("testdata/chat/" + kind + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range a.Files {
		files[f.Name] = string(f.Data)
	}
	return files
}

func (s *chatServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, s.files["models.json"])
		return
	}
	s.mu.Lock()
	s.got = append(s.got, sentRequest{r.URL.String(), r.Header.Clone(), string(raw), time.Now()})
	next := s.todo[0]
	if len(s.todo) > 1 {
		s.todo = s.todo[1:]
	}
	s.mu.Unlock()
	next(w, r)
}

func (s *chatServer) requests() []sentRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

// model returns a model of the provider.
func (s *chatServer) model() *llm.ChatModel {
	s.t.Helper()
	m, err := s.models.Find(s.t.Context(), "p/"+modelNames[s.kind])
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

var modelNames = map[string]string{llm.KindAnthropic: "claude-sonnet-5", llm.KindOpenAI: "gpt-5",
	llm.KindOpenAIChat: "qwen3:32b", llm.KindGemini: "gemini-3.8-flash"}

var chatKinds = []string{llm.KindAnthropic, llm.KindOpenAI, llm.KindOpenAIChat, llm.KindGemini}

// streams sends a recorded stream.
func streams(text string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	}
}

// refuses sends an error response; headers are names and values.
func refuses(status int, body string, headers ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// stalls sends the beginning of a stream, and then nothing until the client leaves.
func stalls(text string) reply {
	return func(w http.ResponseWriter, r *http.Request) {
		streams(text)(w, r)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// breaks sends the beginning of a stream and closes the connection without its end.
func breaks(text string) reply {
	return func(w http.ResponseWriter, r *http.Request) {
		streams(text)(w, r)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// A told is what a model told while it answered.
type told struct {
	text, thinking string
	calls          []drawbridge.CardName
	retries        []time.Duration
	codes          []drawbridge.ModelErrorCode
}

func (d *told) add(x drawbridge.ModelDelta) {
	d.text += x.Text
	d.thinking += x.Thinking
	if x.Call != "" {
		d.calls = append(d.calls, x.Call)
	}
	if x.Retry != nil {
		d.retries = append(d.retries, x.Retry.After)
		d.text, d.thinking, d.calls = "", "", nil
		if e, ok := errors.AsType[*drawbridge.ModelError](x.Retry.Err); ok {
			d.codes = append(d.codes, e.Code)
		}
	}
}

// codeOf returns the code of a model's error; a text for another error.
func codeOf(t *testing.T, err error) drawbridge.ModelErrorCode {
	t.Helper()
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*drawbridge.ModelError](err)
	if !ok {
		return drawbridge.ModelErrorCode("not a ModelError: " + err.Error())
	}
	return e.Code
}

// ask is a small conversation with two tools.
func ask() drawbridge.ModelRequest {
	return drawbridge.ModelRequest{
		Instructions: "You are careful.",
		Messages:     []drawbridge.Message{drawbridge.NewUserMessage("Read a.txt and b.txt.")},
		Tools: []drawbridge.ToolDefinition{
			{Name: "fs__read", Description: "Reads a file.", InputSchema: json.RawMessage(
				`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
			{Name: "fs__list", Description: "Lists files.", InputSchema: json.RawMessage(`{"type":"object"}`)},
			{Name: "hidden", Deferred: true, InputSchema: json.RawMessage(`{"type":"object"}`)},
		},
		CacheKey: "session-1",
	}
}

// indented returns JSON in many lines, so that a difference is small.
func indented(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(strings.TrimSpace(text)), "", "  "); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	return b.String()
}

// status returns the status with which a kind says that it is busy.
func busyStatus(kind string) int {
	if kind == llm.KindAnthropic {
		return 529
	}
	return http.StatusServiceUnavailable
}

func seconds(n ...float64) (all []time.Duration) {
	for _, s := range n {
		all = append(all, time.Duration(s*float64(time.Second)))
	}
	return all
}
