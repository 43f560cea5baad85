package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// send sends a request and gives status and body.
func send(t testing.TB, r *http.Request) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestModernAnswers(t *testing.T) {
	d := newFakeDeck()
	d.hint = drawbridge.CacheHint{TTL: 1500_000_000, Public: true}
	d.instructions = "Be kind."
	url := serveHTTP(t, d, Options{})
	for _, tt := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"discover", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`, 200,
			`{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":` +
				d.capabilities +
				`,"instructions":"Be kind.","resultType":"complete","ttlMs":1500,"cacheScope":"public",` +
				ourMeta + `}}`},
		{"tools", `{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{` + meta + `}}`, 200,
			`{"jsonrpc":"2.0","id":"a","result":{"tools":[` + echoTool + `,` + plainTool +
				`],"resultType":"complete","ttlMs":1500,"cacheScope":"public",` + ourMeta + `}}`},
		{"an empty list", `{"jsonrpc":"2.0","id":-1,"method":"resources/templates/list","params":{` + meta + `}}`, 200,
			`{"jsonrpc":"2.0","id":-1,"result":{"resourceTemplates":[],"resultType":"complete","ttlMs":1500,"cacheScope":"public",` + ourMeta + `}}`},
		{"call", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"plain","arguments":{"n":9007199254740993,"x":[1.0,null]},` + meta + `}}`, 200,
			`{"jsonrpc":"2.0","id":2,"result":{"content":[],"structuredContent":{"n":9007199254740993,"x":[1.0,null]},"resultType":"complete",` + ourMeta + `}}`},
		{"skills", `{"jsonrpc":"2.0","id":11,"method":"skills/list","params":{` + meta + `}}`, 200,
			`{"jsonrpc":"2.0","id":11,"result":{"skills":[{"uri":"skill://x/SKILL.md"}],"resultType":"complete","ttlMs":1500,"cacheScope":"public",` + ourMeta + `}}`},
		{"a skill", `{"jsonrpc":"2.0","id":12,"method":"skills/get","params":{"uri":"skill://x/SKILL.md",` +
			meta + `}}`, 200,
			`{"jsonrpc":"2.0","id":12,"result":{"skill":{},"resultType":"complete","ttlMs":0,"cacheScope":"private",` +
				ourMeta + `}}`},
		{"a directory", `{"jsonrpc":"2.0","id":13,"method":"resources/directory/read","params":{"uri":"skill://x",` +
			meta + `}}`, 200,
			`{"jsonrpc":"2.0","id":13,"result":{"resources":[],"ttlMs":7,"cacheScope":"public","resultType":"complete",` + ourMeta + `}}`},
		{"skills by position", `{"jsonrpc":"2.0","id":14,"method":"skills/list","params":[1]}`, 400,
			`{"jsonrpc":"2.0","id":14,"error":{"code":-32602,"message":"Invalid params: params must be an object"}}`},
		{"unknown method", `{"jsonrpc":"2.0","id":3,"method":"no/such","params":{` + meta + `}}`, 404,
			`{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found: no/such"}}`},
		{"removed method", `{"jsonrpc":"2.0","id":4,"method":"initialize","params":{` + meta + `}}`, 404,
			`{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"Method not found: initialize"}}`},
		{"no _meta", `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, 400,
			`{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"Missing _meta member io.modelcontextprotocol/protocolVersion"}}`},
		{"no capabilities",
			`{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, 400,
			`{"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"Missing _meta member io.modelcontextprotocol/clientCapabilities"}}`},
		{"broken JSON", `{"id":7]`, 400,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: json: want a comma or the end of the object at byte 7"}}`},
		{"an id that is none", `{"jsonrpc":"2.0","id":{},"method":"tools/list"}`, 400,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}`},
		{"a method that is none", `{"jsonrpc":"2.0","id":8,"method":{}}`, 400,
			`{"jsonrpc":"2.0","id":8,"error":{"code":-32600,"message":"Invalid request: method must be a string"}}`},
		{"params that are none", `{"jsonrpc":"2.0","id":9,"method":"tools/list","params":true}`, 400,
			`{"jsonrpc":"2.0","id":9,"error":{"code":-32600,"message":"Invalid request: params must be an object"}}`},
		{"params by position", `{"jsonrpc":"2.0","id":10,"method":"tools/list","params":[1]}`, 400,
			`{"jsonrpc":"2.0","id":10,"error":{"code":-32602,"message":"Invalid params: params must be an object"}}`},
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, 202, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httpRequest(t, http.MethodPost, url, tt.body)
			r.Header.Set(mcp.HeaderVersion, mcp.Version20260728)
			if m, err := mcp.ParseMessage([]byte(tt.body)); err == nil {
				r.Header.Set(mcp.HeaderMethod, m.Method)
				r.Header.Set(mcp.HeaderName, rawjson.GetString(m.Params, "name"))
			}
			status, body := send(t, r)
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			if diff := cmp.Diff(tt.want, body); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestModernHeaders(t *testing.T) {
	url := serveHTTP(t, newFakeDeck(), Options{})
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"region":"Zürich"},` + meta + `}}`
	const bare = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},` + meta + `}}`
	const odd = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"größe","arguments":{},` + meta + `}}`
	const newer = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, tt := range []struct {
		name, body string
		change     func(http.Header)
		status     int
		code       int
	}{
		{"as they must be", bare, func(http.Header) {}, 200, 0},
		{"a name in Base64", odd, func(http.Header) {}, 200, 0},
		{"a parameter in Base64", call, func(h http.Header) {
			h.Set("Mcp-Param-Region",
				mcp.EncodeHeaderValue("Zürich"))
		}, 200, 0},
		{"without a version", bare, func(h http.Header) { h.Del(mcp.HeaderVersion) }, 400, mcp.CodeHeaderMismatch},
		{"another version", bare, func(h http.Header) { h.Set(mcp.HeaderVersion, mcp.Version20251125) }, 400,
			mcp.CodeHeaderMismatch},
		{"without a method", bare, func(h http.Header) { h.Del(mcp.HeaderMethod) }, 400, mcp.CodeHeaderMismatch},
		{"another method", bare, func(h http.Header) { h.Set(mcp.HeaderMethod, "tools/list") }, 400,
			mcp.CodeHeaderMismatch},
		{"a method in capitals", bare, func(h http.Header) { h.Set(mcp.HeaderMethod, "TOOLS/CALL") }, 400,
			mcp.CodeHeaderMismatch},
		{"two methods", bare, func(h http.Header) { h.Add(mcp.HeaderMethod, "tools/call") }, 400,
			mcp.CodeHeaderMismatch},
		{"without a name", bare, func(h http.Header) { h.Del(mcp.HeaderName) }, 400, mcp.CodeHeaderMismatch},
		{"another name", bare, func(h http.Header) { h.Set(mcp.HeaderName, "plain") }, 400, mcp.CodeHeaderMismatch},
		{"a name in broken Base64", odd, func(h http.Header) { h.Set(mcp.HeaderName, "=?base64?!?=") }, 400,
			mcp.CodeHeaderMismatch},
		{"without a parameter", call, func(http.Header) {}, 400, mcp.CodeHeaderMismatch},
		{"another parameter", call, func(h http.Header) { h.Set("Mcp-Param-Region", "Bern") }, 400,
			mcp.CodeHeaderMismatch},
		{"a parameter too many", bare, func(h http.Header) { h.Set("Mcp-Param-Region", "Bern") }, 400,
			mcp.CodeHeaderMismatch},
		{"a newer version", newer, func(h http.Header) { h.Set(mcp.HeaderVersion, "2099-01-01") }, 400,
			mcp.CodeUnsupportedVersion},
		{"a newer version in the body only", newer, func(http.Header) {}, 400, mcp.CodeHeaderMismatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := modernRequest(t, url, tt.body)
			tt.change(r.Header)
			status, body := send(t, r)
			if code := mcp.ErrorCode(rawjson.Get([]byte(body), "error")); status != tt.status || code != tt.code {
				t.Errorf("status %d and code %d, want %d and %d: %s", status, code, tt.status, tt.code, body)
			}
			if id := string(rawjson.Get([]byte(body), "id")); id != "1" {
				t.Errorf("the answer has the id %s", id)
			}
		})
	}
}

func TestUnsupportedVersionSaysWhich(t *testing.T) {
	got := unsupportedVersion("v999.0.0")
	const want = `{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"v999.0.0"}}`
	if diff := cmp.Diff(want, string(got.fault)); diff != "" {
		t.Error(diff)
	}
}

// TestModernCallerIsWhoTheRequestSays shows what the deck learns of a stateless caller.
func TestModernCallerIsWhoTheRequestSays(t *testing.T) {
	d := newFakeDeck()
	var got drawbridge.Caller
	d.do = func(_ context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		got = call.Caller
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}
	url := serveHTTP(t, d, Options{})
	send(t, modernRequest(t, url,
		`{"id":1,"method":"tools/call","params":{"name":"plain","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"io.modelcontextprotocol/clientInfo":{"name":"c"}}}}`))
	want := owner
	want.Transport, want.Era, want.Protocol = drawbridge.HTTPTransport, drawbridge.Modern, "2026-07-28"
	want.Client, want.Capabilities = json.RawMessage(`{"name":"c"}`), json.RawMessage(`{"sampling":{}}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("caller (-want +got):\n%s", diff)
	}
}

// TestModernStream shows a call that says something before its answer: progress always, log lines where they were asked
// for, and never a request.
func TestModernStream(t *testing.T) {
	d := newFakeDeck()
	d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		for _, level := range []string{"debug", "error"} {
			if err := call.Peer.Notify(ctx, mcp.NoteMessage, json.RawMessage(`{"level":"`+level+
				`","data":1}`)); err != nil {
				t.Errorf("notify: %v", err)
			}
		}
		if err := call.Peer.Notify(ctx, mcp.NoteProgress,
			json.RawMessage("{\n\"progressToken\":\"t\",\"progress\":1}")); err != nil {
			t.Errorf("notify: %v", err)
		}
		_, err := call.Peer.Request(ctx, mcp.MethodSampling, nil)
		if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.NotFound {
			t.Errorf("ask: %v, want a NotFound fault", err)
		}
		return drawbridge.Result{Raw: json.RawMessage("{\"content\":[],\n\"resultType\":\"complete\"}")}, nil
	}
	url := serveHTTP(t, d, Options{})
	const progress = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{ \"progressToken\":\"t\",\"progress\":1}}\n\n"
	const answer = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[], \"resultType\":\"complete\"," +
		ourMeta + "}}\n\n"
	for _, tt := range []struct{ name, level, want string }{
		{"no level", ``, progress + answer},
		{"a level", `"io.modelcontextprotocol/logLevel":"warning",`,
			"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"error\",\"data\":1}}\n\n" + progress + answer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, body := send(t, modernRequest(t, url, `{"id":1,"method":"tools/call","params":{"name":"plain",`+
				strings.Replace(meta, `{`, `{`+tt.level, 1)+`}}`))
			if diff := cmp.Diff(tt.want, body); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}
		})
	}
}

// TestModernDisconnectCancels: closing the answer is the cancellation.
func TestModernDisconnectCancels(t *testing.T) {
	d := newFakeDeck()
	started, ended := make(chan struct{}), make(chan error, 1)
	d.do = func(ctx context.Context, _ drawbridge.Call) (drawbridge.Result, error) {
		close(started)
		<-ctx.Done()
		ended <- ctx.Err()
		return drawbridge.Result{}, ctx.Err()
	}
	url := serveHTTP(t, d, Options{})
	r := modernRequest(t, url, `{"id":1,"method":"tools/call","params":{"name":"plain",`+meta+`}}`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	if _, err := http.DefaultClient.Do(r.WithContext(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended with %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
}

// TestCloseEndsCalls: a call in progress ends with the server, and whoever comes later is refused.
func TestCloseEndsCalls(t *testing.T) {
	d := newFakeDeck()
	started := make(chan struct{})
	d.do = func(ctx context.Context, _ drawbridge.Call) (drawbridge.Result, error) {
		close(started)
		<-ctx.Done()
		return drawbridge.Result{}, ctx.Err()
	}
	s := newServer(t, d, Options{})
	url := serveOn(t, s)
	answered := make(chan string)
	go func() {
		_, body := send(t, modernRequest(t, url, `{"id":1,"method":"tools/call","params":{"name":"plain",`+meta+`}}`))
		answered <- body
	}()
	<-started
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got, want := <-answered, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Cancelled"}}`; got != want {
		t.Errorf("the call was answered %s, want %s", got, want)
	}
	if status, _ := send(t, modernRequest(t, url, discover)); status != 503 {
		t.Errorf("a closed server answers with %d", status)
	}
}

// TestNothingIsSaidAfterTheAnswer: what a server says too late does not get into an answer that is over.
func TestNothingIsSaidAfterTheAnswer(t *testing.T) {
	d := newFakeDeck()
	var late drawbridge.Peer
	d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		late = call.Peer
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}
	w := httptest.NewRecorder()
	newServer(t, d, Options{}).Handler().ServeHTTP(w, modernRequest(t, "http://localhost",
		`{"id":1,"method":"tools/call","params":{"name":"plain",`+meta+`}}`))
	if err := late.Notify(t.Context(), mcp.NoteProgress, nil); !errors.Is(err, errCallerGone) {
		t.Errorf("notify: %v", err)
	}
	if got, want := w.Body.String(), `{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"complete",`+ourMeta+
		`}}`; got != want {
		t.Errorf("the answer is %s, want %s", got, want)
	}
}

// TestFinish shows what is added to a result, and that nothing else changes.
func TestFinish(t *testing.T) {
	s := newServer(t, newFakeDeck(), Options{})
	const read = mcp.MethodResourcesRead
	for _, tt := range []struct {
		era             drawbridge.ProtocolEra
		method, in, out string
	}{
		{drawbridge.Modern, "tools/call", `{}`, `{"resultType":"complete",` + ourMeta + `}`},
		{drawbridge.Modern, "tools/call", ` { } `, `{ "resultType":"complete",` + ourMeta + `}`},
		{drawbridge.Modern, "tools/call", `{"a":1.0}`, `{"a":1.0,"resultType":"complete",` + ourMeta + `}`},
		{drawbridge.Modern, "tools/call", `{"resultType":"input_required","requestState":"x"}`,
			`{"resultType":"input_required","requestState":"x",` + ourMeta + `}`},
		{drawbridge.Modern, "tools/call", `{"resul\u0074Type":"task"}`, `{"resul\u0074Type":"task",` + ourMeta + `}`},
		{drawbridge.Modern, "tools/call", `{"_meta":{"a":1},"z":0}`,
			`{"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":` + ourInfo + `},"z":0,"resultType":"complete"}`},
		{drawbridge.Modern, "tools/call", `{"_meta":{"io.modelcontextprotocol/serverInfo":{}}}`,
			`{"_meta":{"io.modelcontextprotocol/serverInfo":{}},"resultType":"complete"}`},
		{drawbridge.Modern, "tools/call", `{"deep":{"resultType":1,"_meta":2}}`,
			`{"deep":{"resultType":1,"_meta":2},"resultType":"complete",` + ourMeta + `}`},
		{drawbridge.Modern, read, `{"contents":[]}`,
			`{"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private",` + ourMeta + `}`},
		{drawbridge.Modern, read, `{"contents":[],"ttlMs":5,"cacheScope":"public"}`,
			`{"contents":[],"ttlMs":5,"cacheScope":"public","resultType":"complete",` + ourMeta + `}`},
		{drawbridge.Modern, read, `{"resultType":"input_required"}`, `{"resultType":"input_required",` + ourMeta + `}`},
		{drawbridge.Legacy, "tools/call", `{"a":"\u0041","resultType":"complete","z":[]}`, `{"a":"\u0041","z":[]}`},
		{drawbridge.Legacy, "tools/call", `{"_meta":{"x":1e400}}`, `{"_meta":{"x":1e400}}`},
	} {
		r := s.finishResult(drawbridge.Caller{Principal: owner.Principal, Era: tt.era}, tt.method,
			json.RawMessage(tt.in))
		if got := string(r.body) + string(r.tail); got != tt.out {
			t.Errorf("finish(%s, %s, %s)\n got %s\nwant %s", tt.era, tt.method, tt.in, got, tt.out)
		}
	}
}

// TestCapabilitiesAreObjects: what clients declare is read by others, so what is no declaration is refused.
func TestCapabilitiesAreObjects(t *testing.T) {
	s := newServer(t, newFakeDeck(), Options{})
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	for _, tt := range []struct{ capabilities, wrong string }{
		{`{}`, ""},
		{`{"elicitation":{},"roots":{"listChanged":true},"tasks":null}`, ""},
		{`{"mine":true,"ours":[1],"Sampling":7}`, ""},
		{`{"roots":true}`, "roots"},
		{`{"sampling":[]}`, "sampling"},
		{`{"elicitation":"form"}`, "elicitation"},
		{`{"tasks":1}`, "tasks"},
		{`{"extensions":["a"]}`, "extensions"},
		{`{"experimental":false}`, "experimental"},
		{`{"s\u0061mpling":1}`, "sampling"},
		{`{"sampling":1,"sampling":{}}`, "sampling"},
	} {
		var want string
		if tt.wrong != "" {
			want = `{"code":-32602,"message":"Invalid client capabilities: ` + tt.wrong + ` must be an object"}`
		}
		check := func(form, got string) {
			t.Helper()
			if got := string(rawjson.Get([]byte(got), "error")); got != want {
				t.Errorf("%s client with %s: error %s, want %s", form, tt.capabilities, got, want)
			}
		}
		legacy := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + tt.capabilities + `}}`
		_, body := send(t, httpRequest(t, http.MethodPost, web.URL, legacy))
		check("a stateful HTTP", body)
		modern := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + strings.Replace(meta, `{}`,
			tt.capabilities, 1) + `}}`
		_, body = send(t, modernRequest(t, web.URL, modern))
		check("a stateless HTTP", body)
		c := dial(t, newFakeDeck())
		c.send(legacy, modern)
		for _, form := range []string{"a stateful stdio", "a stateless stdio"} {
			line, err := c.lines.Next()
			if err != nil {
				t.Fatal(err)
			}
			check(form, string(line))
		}
		if err := c.hangUp(); err != nil {
			t.Error(err)
		}
	}
}
