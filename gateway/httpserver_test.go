//go:build !nomcp

package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// A caller at a door, who looks at bytes.
type knocker struct {
	t   *testing.T
	url string
}

// knock serves a gateway's door on loopback until the test ends.
func knock(t *testing.T, g *Gateway) knocker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		if err := g.Server().Serve(ctx, l); !errors.Is(err, context.Canceled) {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		stop()
		work.Wait()
	})
	return knocker{t, "http://" + l.Addr().String() + "/mcp"}
}

// do sends a stateless request with a token, and returns status and answer.
func (k knocker) do(token, method, params string) (int, string) {
	k.t.Helper()
	return k.doWithMeta(token, method, params, "")
}

// doWithMeta is do with further members of the "_meta" object.
func (k knocker) doWithMeta(token, method, params, meta string) (int, string) {
	k.t.Helper()
	if meta != "" {
		meta = "," + meta
	}
	meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + tasksDeclared + meta + `}`
	if params != "" {
		meta += ","
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, meta, params)
	r, err := http.NewRequestWithContext(k.t.Context(), http.MethodPost, k.url, strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	m, err := mcp.ParseMessage([]byte(body))
	if err != nil {
		k.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		mcp.HeaderVersion: mcp.Version20260728, mcp.HeaderMethod: method,
	} {
		r.Header.Set(name, value)
	}
	if name, ok := mcp.TargetName(method, m.Params); ok {
		r.Header.Set(mcp.HeaderName, mcp.EncodeHeaderValue(name))
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// client makes a token for a client.
func client(t *testing.T, g *Gateway, name string, expires time.Time, scopes ...drawbridge.Scope) (token string) {
	t.Helper()
	secret, hash := NewClientToken()
	if err := g.shared.db.AddClient(t.Context(), store.Client{Name: name, Scopes: scopes, Expires: expires},
		hash); err != nil {
		t.Fatal(err)
	}
	return secret.Reveal()
}

// TestClientsOfADoor: each client with a token of its own sees and reaches its part, and nothing of the others.
func TestClientsOfADoor(t *testing.T) {
	upstream := httptest.NewServer(mcptest.HTTPTasks())
	defer upstream.Close()
	g := open(t, Config{Servers: []config.Server{{ID: "jobs", URL: upstream.URL}, {ID: "more", URL: upstream.URL}}})
	loaded(t, g)
	k := knock(t, g)
	ada, bob := client(t, g, "ada", time.Time{}, "mcp:jobs"), client(t, g, "bob", time.Now().Add(time.Hour), "mcp:*")
	old := client(t, g, "old", time.Now().Add(-time.Second), "*")
	for _, tt := range []struct {
		token, has, hasNot string
		status             int
	}{
		{"", "Unauthorized", "jobs", 401},
		{old, "Unauthorized", "jobs", 401},
		{ada + "x", "Unauthorized", "jobs", 401},
		{clientTokenPrefix, "Unauthorized", "jobs", 401},
		{ada, "jobs__confirm_delete", "more__", 200},
		{bob, "more__confirm_delete", `"public"`, 200},
	} {
		status, body := k.do(tt.token, mcp.MethodToolsList, "")
		if status != tt.status || !strings.Contains(body, tt.has) || strings.Contains(body, tt.hasNot) {
			t.Errorf("%.8s: %d %s", tt.token, status, body)
		}
	}
	if _, body := k.do(ada, mcp.MethodToolsCall, `"name":"drawbridge_scopes"`); !strings.Contains(body,
		`You are \"client:ada\" (external). Scopes: mcp:jobs.`) {
		t.Error(body)
	}
	_, missing := k.do(ada, mcp.MethodToolsCall, `"name":"more__nothing_at_all"`)
	if _, body := k.do(ada, mcp.MethodToolsCall, `"name":"more__confirm_delete"`); strings.ReplaceAll(body,
		"confirm_delete", "nothing_at_all") != missing {
		t.Errorf("a card of another's and none: %s and %s", body, missing)
	}
	_, created := k.do(ada, mcp.MethodToolsCall, `"name":"jobs__confirm_delete","arguments":{}`)
	id := rawjson.GetString([]byte(created), "result", "taskId")
	for token, want := range map[string]bool{ada: true, bob: false} {
		if _, body := k.do(token, mcp.MethodTasksGet, `"taskId":"`+id+`"`); strings.Contains(body,
			`"result"`) != want || id == "" {
			t.Errorf("%.8s asks after the task %q: %s", token, id, body)
		}
	}
	if all, err := g.shared.db.Clients(t.Context()); err != nil || all[0].Used.IsZero() || !all[2].Used.IsZero() {
		t.Errorf("the days: %+v, %v", all, err)
	}
	if removed, err := g.shared.db.RemoveClient(t.Context(), "ada"); !removed || err != nil {
		t.Fatal(removed, err)
	}
	if status, _ := k.do(ada, mcp.MethodToolsList, ""); status != 401 {
		t.Errorf("a client that was removed: %d", status)
	}
}

// TestNoSecretOfACallerLeaves looks for the access token of a caller wherever it could have come to.
func TestNoSecretOfACallerLeaves(t *testing.T) {
	issuer := mcptest.NewTokenIssuer(t, "")
	var mu sync.Mutex
	var upstreamHeard bytes.Buffer
	tasks := mcptest.HTTPTasks()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		fmt.Fprintln(&upstreamHeard, r.URL, r.Header, string(body))
		mu.Unlock()
		tasks.ServeHTTP(w, r)
	}))
	defer upstream.Close()
	var log syncBuffer
	dir := t.TempDir()
	g := open(t, Config{
		Servers: []config.Server{{ID: "jobs", URL: upstream.URL}}, Store: filepath.Join(dir, "store.db"),
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OAuth:  config.OAuthSettings{Issuers: []string{issuer.URL}},
	})
	loaded(t, g)
	k := knock(t, g)
	token := issuer.Token(issuer.Claims(k.url, nil))
	signature := token[strings.LastIndex(token, ".")+1:]
	client := client(t, g, "ada", time.Time{}, "mcp:*")
	for _, one := range []string{token, client} {
		if status, body := k.do(one, mcp.MethodToolsCall,
			`"name":"jobs__confirm_delete","arguments":{}`); status != 200 || !strings.Contains(body, "taskId") {
			t.Errorf("a call: %d %s", status, body)
		}
		_, body := k.do(one, mcp.MethodToolsCall, `"name":"drawbridge_scopes"`)
		_, wrong := k.do(one+"x", mcp.MethodToolsList, "")
		for what, text := range map[string]string{"an answer": body, "a refusal": wrong, "the log": log.String(),
			"the upstream": upstreamHeard.String()} {
			if strings.Contains(text, one) || strings.Contains(text, signature) || text == "" && what != "the log" {
				t.Errorf("%s: %s", what, text)
			}
		}
	}
	issuer.SetDown(true)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && (bytes.Contains(text, []byte(token)) ||
			bytes.Contains(text, []byte(client)) || bytes.Contains(text, []byte(signature))) {
			t.Errorf("a token is in %s", file)
		}
	}
}

// A syncBuffer is a buffer for several writers.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestClientTokensStayHere: no issuer is asked about a token that is one of ours, or looks like one.
func TestClientTokensStayHere(t *testing.T) {
	issuer := mcptest.NewTokenIssuer(t, "")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(issuer.Secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := open(t, Config{Servers: []config.Server{{ID: "jobs", URL: "http://127.0.0.1:1"}}, OnDemand: true,
		OAuth: config.OAuthSettings{
			Issuers: []string{issuer.URL}, Audience: "gate", IntrospectionURL: issuer.URL + mcptest.IntrospectPath,
			IntrospectionClient: issuer.Client, IntrospectionSecretFile: secret,
			Scopes: map[string][]string{"tools": {"mcp:*"}},
		}})
	k := knock(t, g)
	ada := client(t, g, "ada", time.Time{}, "mcp:*")
	issuer.SetIntrospection("opaque", `{"active":true,"sub":"eve","aud":"gate","scope":"tools"}`)
	for token, want := range map[string]int{ada: 200, ada + "x": 401, clientTokenPrefix + "opaque": 401,
		"opaque": 200, "other": 401} {
		if status, _ := k.do(token, mcp.MethodToolsList, ""); status != want {
			t.Errorf("%.10s: %d", token, status)
		}
	}
	if n := issuer.RequestCount(mcptest.IntrospectPath); n != 2 {
		t.Errorf("the issuer was asked %d times", n)
	}
	issuer.SetDown(true)
	if status, _ := k.do("another", mcp.MethodToolsList, ""); status != 503 {
		t.Errorf("introspection down: %d", status)
	}
}

// TestWrongDoors has settings of doors that no one can mean.
func TestWrongDoors(t *testing.T) {
	for name, o := range map[string]config.OAuthSettings{
		"read the client secret file missing": {Issuers: []string{"https://a.example"},
			IntrospectionURL: "https://a.example/i", IntrospectionClient: "x", IntrospectionSecretFile: "missing"},
		"check access tokens": {Issuers: []string{"http://a.example"}},
		"the public URL of the HTTP endpoint": {Issuers: []string{"https://a.example"},
			PublicURL: "http://gate.example"},
	} {
		g, err := Open(t.Context(), Config{Servers: []config.Server{{ID: "x", Command: "x"}},
			Store: MemoryStore, OAuth: o})
		if f := drawbridge.AsFault(err); f == nil || f.Code != drawbridge.InvalidInput || f.Step != name {
			t.Errorf("%s: %v", name, err)
		}
		if g != nil {
			closeIt(t, g)
		}
	}
}

// TestAClientCallsAProcess: a client with a token has a process of its own of a stdio server.
func TestAClientCallsAProcess(t *testing.T) {
	g := open(t, Config{Servers: []config.Server{row(t, "every", "everything-legacy")}})
	loaded(t, g)
	k := knock(t, g)
	ada := client(t, g, "ada", time.Time{}, "mcp:every")
	if status, body := k.do(ada, mcp.MethodToolsCall,
		`"name":"every__echo","arguments":{"text":"hello"}`); status != 200 || !strings.Contains(body, "hello") {
		t.Fatalf("%d %s", status, body)
	}
	if pids := g.Status()[0].PIDs; len(pids) != 2 {
		t.Errorf("the processes are %v, want the owner's and the client's", pids)
	}
}

// TestShut: a gateway that lives on has nothing of a door that was shut, and has its others.
func TestShut(t *testing.T) {
	g := openOnly(t, Config{Store: MemoryStore, Servers: []config.Server{{ID: "x", Command: "x"}}, OnDemand: true})
	for range 3 {
		door, err := g.NewServer(t.Context(), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.CloseServer(door); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.extraServers) != 1 || g.extraServers[0] != g.Server() {
		t.Errorf("%d doors", len(g.extraServers))
	}
}

// TestTheNextEndpointNeedsTheTokenToo has a serve attach again: its new HTTP endpoint needs the same token.
func TestTheNextEndpointNeedsTheTokenToo(t *testing.T) {
	g := openOnly(t, Config{Servers: []config.Server{{ID: "x", Command: "x"}}, OnDemand: true})
	db := g.shared.db
	_, hash := NewClientToken()
	if err := db.AddClient(t.Context(), store.Client{Name: "ci", Scopes: []drawbridge.Scope{"mcp:x"}},
		hash); err != nil {
		t.Fatal(err)
	}
	needed := func() bool {
		check, _, err := LoadedConfig{shared: g.shared, config: g.config, set: g.set}.newAuthenticator()
		if err != nil {
			t.Fatal(err)
		}
		needed, err := check.Required(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return needed
	}
	if !needed() {
		t.Error("there is a client, and the door is open")
	}
	if removed, err := db.RemoveClient(t.Context(), "ci"); !removed || err != nil {
		t.Fatal(removed, err)
	}
	if !needed() {
		t.Error("the last client was removed, and the next door is open")
	}
}
