package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fakeDeck is a deck of one tool, one prompt and one resource, whose calls the test answers.
type fakeDeck struct {
	// do answers calls; nil echoes the arguments of a tool as its structured content.
	do           func(context.Context, drawbridge.Call) (drawbridge.Result, error)
	capabilities string
	instructions string

	mu      sync.Mutex
	items   map[string][]json.RawMessage
	version uint64
	hint    drawbridge.CacheHint
	hear    map[int]func(deck.Event)
	// log has what the server told the deck: subscriptions, levels, ended sessions.
	log []string
}

const (
	echoTool   = `{"name":"echo","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`
	plainTool  = `{"name":"plain","inputSchema":{"type":"object"},"annotations":{"n":9007199254740993}}`
	onePrompt  = `{"name":"greet"}`
	watchedURI = "test://watched"
)

func newFakeDeck() *fakeDeck {
	return &fakeDeck{
		capabilities: `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"logging":{},"completions":{}}`,
		items: map[string][]json.RawMessage{
			mcp.MethodToolsList:     {json.RawMessage(echoTool), json.RawMessage(plainTool)},
			mcp.MethodPromptsList:   {json.RawMessage(onePrompt)},
			mcp.MethodResourcesList: {json.RawMessage(`{"uri":"test://watched","name":"w"}`)},
			mcp.MethodTemplatesList: {},
			mcp.MethodSkillsList:    {json.RawMessage(`{"uri":"skill://x/SKILL.md"}`)},
		},
		version: 1,
		hear:    map[int]func(deck.Event){},
	}
}

func (d *fakeDeck) Do(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	if d.do != nil {
		return d.do(ctx, call)
	}
	switch call.Method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead, mcp.MethodComplete:
	case mcp.MethodSkillsGet:
		return drawbridge.Result{Raw: json.RawMessage(`{"skill":{}}`)}, nil
	case mcp.MethodDirectoryRead:
		return drawbridge.Result{Raw: json.RawMessage(`{"resources":[],"ttlMs":7,"cacheScope":"public"}`)}, nil
	default:
		return drawbridge.Result{}, &drawbridge.Fault{
			Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound,
			Raw: mcp.NewErrorObject(mcp.CodeMethodNotFound, "Method not found: "+call.Method, nil),
		}
	}
	arguments := rawjson.Get(call.Params, "arguments")
	if arguments == nil {
		arguments = json.RawMessage(`{}`)
	}
	return drawbridge.Result{Raw: json.RawMessage(`{"content":[],"structuredContent":` + string(arguments) + `}`)}, nil
}

func (d *fakeDeck) FindCard(_ drawbridge.Caller, name drawbridge.CardName) (drawbridge.Spec, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, item := range d.items[mcp.MethodToolsList] {
		if rawjson.GetString(item, "name") == string(name) {
			return drawbridge.Spec{Name: name, Server: "fake", Tool: string(name), Definition: item}, true
		}
	}
	return drawbridge.Spec{}, false
}

func (d *fakeDeck) ListDirect(context.Context, drawbridge.Caller) deck.List {
	return deck.List{Items: d.items["direct"], Version: d.version + 1}
}

func (d *fakeDeck) List(_ context.Context, _ drawbridge.Caller, method string) (deck.List, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return deck.List{Items: d.items[method], CacheHint: d.hint, Version: d.version}, nil
}

func (d *fakeDeck) CacheHint(drawbridge.Caller, string) drawbridge.CacheHint { return d.hint }

func (d *fakeDeck) Instructions(drawbridge.Caller) string { return d.instructions }

func (d *fakeDeck) Capabilities(drawbridge.Caller) json.RawMessage {
	return json.RawMessage(d.capabilities)
}

func (d *fakeDeck) OnEvent(f func(deck.Event)) (cancel func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := len(d.hear)
	d.hear[id] = f
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.hear, id)
	}
}

// tell has the deck say something.
func (d *fakeDeck) tell(e deck.Event) {
	d.mu.Lock()
	var all []func(deck.Event)
	for _, f := range d.hear {
		all = append(all, f)
	}
	d.mu.Unlock()
	for _, f := range all {
		f(e)
	}
}

// setTools changes the list of tools.
func (d *fakeDeck) setTools(items ...json.RawMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.items[mcp.MethodToolsList] = items
	d.version++
}

func (d *fakeDeck) note(what ...string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, strings.Join(what, " "))
	return nil
}

func (d *fakeDeck) noted() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.log)
}

var errMissing = &drawbridge.Fault{
	Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound, Step: "unknown resource test://missing",
}

func (d *fakeDeck) Subscribe(_ context.Context, _ drawbridge.Caller, uris ...string) error {
	_ = d.note("subscribe", strings.Join(uris, " "))
	if slices.Contains(uris, "test://missing") {
		return &drawbridge.UnwatchedError{Unwatched: drawbridge.WatchSet{URIs: []string{"test://missing"}},
			Err: errMissing}
	}
	return nil
}

func (d *fakeDeck) Unsubscribe(_ context.Context, _ drawbridge.Caller, uris ...string) error {
	return d.note("unsubscribe", strings.Join(uris, " "))
}

func (d *fakeDeck) SetLogLevel(_ context.Context, _ drawbridge.Caller, level string) error {
	return d.note("level", level)
}

func (d *fakeDeck) EndSession(drawbridge.Caller) { _ = d.note("end session") }

// owner is who calls in tests.
var owner = drawbridge.Caller{Kind: drawbridge.External, Principal: "me", Scopes: []drawbridge.Scope{"*"}}

// newServer makes a server on the deck that is closed with the test.
func newServer(t testing.TB, d Deck, o Options) *Server {
	t.Helper()
	if o.Caller.Kind == drawbridge.Nobody {
		o.Caller = owner
	}
	if o.Version == "" {
		o.Version = "1"
	}
	s, err := New(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// serveHTTP serves the deck over HTTP until the test ends.
func serveHTTP(t testing.TB, d Deck, o Options) (url string) {
	t.Helper()
	s := newServer(t, d, o)
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		_ = s.Close() // ends streams, which the web server would wait for
		web.Close()
	})
	return web.URL
}

// ourInfo is what results say of us, and meta what a stateless request says of its caller.
const (
	ourInfo  = `{"name":"drawbridge","title":"Drawbridge","version":"1"}`
	ourMeta  = `"_meta":{"io.modelcontextprotocol/serverInfo":` + ourInfo + `}`
	meta     = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	jsonBoth = "application/json, text/event-stream"
)

// modernRequest makes a POST of a stateless client, its headers as they must be.
func modernRequest(t testing.TB, url, body string) *http.Request {
	t.Helper()
	r := httpRequest(t, http.MethodPost, url, body)
	m, err := mcp.ParseMessage([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(mcp.HeaderVersion, mcp.Version20260728)
	r.Header.Set(mcp.HeaderMethod, m.Method)
	if name, ok := mcp.TargetName(m.Method, m.Params); ok {
		r.Header.Set(mcp.HeaderName, mcp.EncodeHeaderValue(name))
	}
	return r
}

func httpRequest(t testing.TB, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", jsonBoth)
	return r
}
