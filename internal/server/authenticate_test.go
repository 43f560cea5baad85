package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/bearer"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
)

// A register is a Check that knows tokens by heart.
type register struct {
	mu    sync.Mutex
	known map[string]drawbridge.Caller
	// open says that nobody has to prove anything, down is why nobody can be checked.
	open bool
	down error
	// asked are the resources that tokens came to.
	asked []string
}

func newRegister() *register {
	return &register{known: map[string]drawbridge.Caller{
		"ada-1": somebody("ada", "mcp:fake", "ada-1"), "ada-2": somebody("ada", "mcp:fake", "ada-2"),
		"eve-1": somebody("eve", "mcp:fake", "eve-1"),
	}}
}

func somebody(name string, scope drawbridge.Scope, proof string) drawbridge.Caller {
	return drawbridge.Caller{
		Kind: drawbridge.External, Principal: name, Scopes: []drawbridge.Scope{scope},
		AccessToken: drawbridge.NewSecret(proof),
	}
}

func (r *register) Required(context.Context) (bool, error) { return !r.open, r.down }

func (r *register) Authenticate(_ context.Context, token, resource string) (drawbridge.Caller, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, resource)
	if r.down != nil {
		return drawbridge.Caller{}, r.down
	}
	if token == "powerless" {
		return drawbridge.Caller{}, &drawbridge.Fault{Code: drawbridge.PolicyBlocked, Step: "the token has no scope"}
	}
	if c, ok := r.known[token]; ok {
		return c, nil
	}
	return drawbridge.Caller{}, &drawbridge.Fault{Code: drawbridge.AuthFailure, Step: "the token is not known"}
}

// set changes what a token proves; nobody takes it back.
func (r *register) set(token string, c drawbridge.Caller) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.known, token); c.Kind != drawbridge.Nobody {
		r.known[token] = c
	}
}

// bring takes the register down, or up again.
func (r *register) bring(down error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

var testResource = Resource{
	URL: "https://gate.example/gw/mcp", Issuers: []string{"https://issuer.example"},
	Scopes: []string{"mcp", "mcp:fake"},
}

const challengeTail = `resource_metadata="https://gate.example/.well-known/oauth-protected-resource/gw/mcp", scope="mcp mcp:fake"`

// serveWhole has Serve serve a server on a listener of loopback until the test ends.
func serveWhole(t *testing.T, s *Server) (origin string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the end: %v", err)
		}
	})
	return "http://" + l.Addr().String()
}

// with gives a request a token.
func with(r *http.Request, token string) *http.Request {
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// TestRoutes sends every kind of request to every route, with no credential, with wrong ones and with good ones.
func TestRoutes(t *testing.T) {
	origin := serveWhole(t, newServer(t, newFakeDeck(), Options{Token: []byte("the one token"),
		Authenticator: newRegister(), Resource: testResource}))
	post := func(path, body string) func() *http.Request {
		return func() *http.Request { return modernRequest(t, origin+path, body) }
	}
	plain := func(method, path string) func() *http.Request {
		return func() *http.Request { return httpRequest(t, method, origin+path, "") }
	}
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`
	// The columns: no credential, an unknown token, another scheme, a token in the URL, one without rights, a good
	// one, the door's own.
	for _, tt := range []struct {
		name    string
		request func() *http.Request
		want    [7]int
	}{
		{"a stateless request", post(Path, discover), [7]int{401, 401, 401, 401, 403, 200, 200}},
		{"initialize", func() *http.Request { return httpRequest(t, http.MethodPost, origin+Path, begin) },
			[7]int{401, 401, 401, 401, 403, 200, 200}},
		{"no JSON at all", func() *http.Request { return httpRequest(t, http.MethodPost, origin+Path, "hello") },
			[7]int{401, 401, 401, 401, 403, 400, 400}},
		{"a stream", plain(http.MethodGet, Path), [7]int{401, 401, 401, 401, 403, 400, 400}},
		{"the end of a session", plain(http.MethodDelete, Path), [7]int{401, 401, 401, 401, 403, 400, 400}},
		{"another method", plain(http.MethodPut, Path), [7]int{401, 401, 401, 401, 403, 405, 405}},
		{"a browser's question", plain(http.MethodOptions, Path), [7]int{204, 204, 204, 204, 204, 204, 204}},
		{"metadata of the host", plain(http.MethodGet, bearer.MetadataPath), [7]int{200, 200, 200, 200, 200, 200, 200}},
		{"metadata of the path", plain(http.MethodGet, bearer.MetadataPath+Path), [7]int{200, 200, 200, 200,
			200, 200, 200}},
		{"metadata of the path beyond", plain(http.MethodGet, bearer.MetadataPath+"/gw/mcp"), [7]int{200, 200, 200, 200,
			200, 200, 200}},
		{"metadata of another path", plain(http.MethodGet, bearer.MetadataPath+"/other"), [7]int{404, 404, 404, 404,
			404, 404, 404}},
		{"a change of metadata", plain(http.MethodPost, bearer.MetadataPath), [7]int{405, 405, 405, 405,
			405, 405, 405}},
		{"no route", plain(http.MethodGet, "/"), [7]int{404, 404, 404, 404, 404, 404, 404}},
		{"below the path", post(Path+"/x", discover), [7]int{404, 404, 404, 404, 404, 404, 404}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i, credential := range []string{"", "Bearer wrong", "Basic ada-1", "?", "Bearer powerless",
				"Bearer ada-1", "Bearer the one token"} {
				r := tt.request()
				switch credential {
				case "":
				case "?":
					r.URL.RawQuery = "access_token=ada-1"
				default:
					r.Header.Set("Authorization", credential)
				}
				if status, body := send(t, r); status != tt.want[i] {
					t.Errorf("%q: status %d, want %d: %s", credential, status, tt.want[i], body)
				}
			}
		})
	}
}

// TestChallenges has what is said to those who do not get in, to the letter.
func TestChallenges(t *testing.T) {
	for _, tt := range []struct {
		name, header string
		resource     Resource
		want         string
	}{
		{"no token", "", testResource, `Bearer ` + challengeTail},
		{"a wrong token", "Bearer x", testResource,
			`Bearer error="invalid_token", error_description="the token is not known", ` + challengeTail},
		{"what is no token", "Bearer \x01x", testResource, `Bearer error="invalid_token", ` + challengeTail},
		{"an empty token", "Bearer ", testResource, `Bearer error="invalid_token", ` + challengeTail},
		{"a token too long", "Bearer " + strings.Repeat("x", 20<<10), testResource,
			`Bearer error="invalid_token", ` + challengeTail},
		{"another scheme", "Basic ada-1", testResource, `Bearer error="invalid_token", ` + challengeTail},
		{"a token without rights", "Bearer powerless", testResource,
			`Bearer error="insufficient_scope", error_description="the token has no scope", ` + challengeTail},
		{"no issuer", "", Resource{}, `Bearer realm="drawbridge"`},
		{"no issuer, a wrong token", "Bearer x", Resource{},
			`Bearer realm="drawbridge", error="invalid_token", error_description="the token is not known"`},
	} {
		d := newServer(t, newFakeDeck(), Options{Authenticator: newRegister(), Resource: tt.resource}).Handler()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(discover))
		if tt.header != "" {
			r.Header.Set("Authorization", tt.header)
		}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		if got := w.Header().Get("WWW-Authenticate"); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// TestOA17Headers shows that nothing but the Authorization header says who calls.
func TestOA17Headers(t *testing.T) {
	d := newFakeDeck()
	heard := make(chan drawbridge.Call, 10)
	d.do = func(_ context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		heard <- call
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}
	url := serveHTTP(t, d, Options{Authenticator: newRegister(), Resource: testResource})
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plain",` + meta + `}}`
	for _, tt := range []struct {
		name   string
		change func(*http.Request)
		want   int
	}{
		{"client-supplied identity headers", func(r *http.Request) {
			for _, name := range []string{"X-Forwarded-User", "X-Remote-User", "X-Auth-Request-User", "X-User",
				"Forwarded", "X-Forwarded-For", "X-Drawbridge-Principal"} {
				r.Header.Set(name, "root")
			}
		}, 200},
		{"identity headers alone", func(r *http.Request) {
			r.Header.Del("Authorization")
			r.Header.Set("X-Forwarded-User", "ada")
		}, 401},
		{"a cookie", func(r *http.Request) {
			r.Header.Del("Authorization")
			r.Header.Set("Cookie", "access_token=ada-1")
		}, 401},
		{"a token in the URL", func(r *http.Request) {
			r.Header.Del("Authorization")
			r.URL.RawQuery = "access_token=ada-1"
		}, 401},
		{"a token in the URL beside a good one", func(r *http.Request) { r.URL.RawQuery = "access_token=eve-1" }, 200},
		{"Bearer in lower case", func(r *http.Request) { r.Header.Set("Authorization", "bearer ada-1") }, 200},
		{"Basic", func(r *http.Request) { r.SetBasicAuth("ada", "ada-1") }, 401},
		{"DPoP", func(r *http.Request) { r.Header.Set("Authorization", "DPoP ada-1") }, 401},
		{"two headers", func(r *http.Request) { r.Header.Add("Authorization", "Bearer eve-1") }, 400},
		{"two tokens", func(r *http.Request) { r.Header.Set("Authorization", "Bearer ada-1, Bearer eve-1") }, 401},
		{"no scheme", func(r *http.Request) { r.Header.Set("Authorization", "ada-1") }, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := with(modernRequest(t, url, call), "ada-1")
			tt.change(r)
			if status, body := send(t, r); status != tt.want {
				t.Fatalf("status %d, want %d: %s", status, tt.want, body)
			}
			if tt.want != 200 {
				return
			}
			got := (<-heard).Caller
			want := somebody("ada", "mcp:fake", "ada-1")
			if got.Kind != want.Kind || got.Principal != "ada" || cmp.Diff(want.Scopes, got.Scopes) != "" ||
				got.AccessToken != want.AccessToken {
				t.Errorf("the caller is %+v", got)
			}
		})
	}
	if len(heard) > 0 {
		t.Errorf("%d calls too many", len(heard))
	}
}

// TestOA10AnotherPrincipal shows that a session is not there for anybody but its principal, by whichever request.
func TestOA10AnotherPrincipal(t *testing.T) {
	url := serveHTTP(t, newFakeDeck(), Options{Token: []byte("owner"), Authenticator: newRegister(),
		Resource: testResource})
	begin := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`
	resp, err := http.DefaultClient.Do(with(httpRequest(t, http.MethodPost, url, begin), "ada-1"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	session := resp.Header.Get(mcp.HeaderSession)
	try := func(token, id, method, body, last string) (int, string) {
		r := with(httpRequest(t, method, url, body), token)
		r.Header.Set(mcp.HeaderSession, id)
		if last != "" {
			r.Header.Set(mcp.HeaderLastEvent, last)
		}
		return send(t, r)
	}
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for _, tt := range []struct{ name, method, body, last string }{
		{"a request", http.MethodPost, ping, ""},
		{"a batch", http.MethodPost, `[` + ping + `]`, ""},
		{"an answer", http.MethodPost, `{"jsonrpc":"2.0","id":1,"result":{}}`, ""},
		{"a cancellation", http.MethodPost,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, ""},
		{"the stream", http.MethodGet, "", ""},
		{"resumption", http.MethodGet, "", "x-1-0"},
		{"the end", http.MethodDelete, "", ""},
	} {
		for _, token := range []string{"eve-1", "owner"} {
			status, body := try(token, session, tt.method, tt.body, tt.last)
			unknown, same := try(token, "no-such-session", tt.method, tt.body, tt.last)
			if status != 404 || unknown != 404 || body != same {
				t.Errorf("%s by %s: status %d %q; of no session %d %q", tt.name, token, status, body, unknown, same)
			}
		}
	}
	for _, token := range []string{"ada-1", "ada-2"} {
		if status, body := try(token, session, http.MethodPost, ping, ""); status != 200 {
			t.Errorf("its own principal by %s: %d %s", token, status, body)
		}
	}
}

// TestCallerOfEachRequest shows that a session's caller has the rights, the origin and the proof of the request, not
// those of another.
func TestCallerOfEachRequest(t *testing.T) {
	d, check := newFakeDeck(), newRegister()
	heard := make(chan drawbridge.Caller, 1)
	d.do = func(_ context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		heard <- call.Caller
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}
	again := somebody("ada", "mcp:other", "ada-2")
	again.Origin = "observed"
	check.set("ada-2", again)
	url := serveHTTP(t, d, Options{Authenticator: check})
	resp, err := http.DefaultClient.Do(with(httpRequest(t, http.MethodPost, url,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"roots":{}}}}`), "ada-1"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for _, token := range []string{"ada-1", "ada-2", "ada-1"} {
		for _, body := range []string{`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"plain"}}`,
			`[{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"plain"}}]`} {
			r := with(httpRequest(t, http.MethodPost, url, body), token)
			r.Header.Set(mcp.HeaderSession, resp.Header.Get(mcp.HeaderSession))
			if status, body := send(t, r); status != 200 {
				t.Fatalf("%d: %s", status, body)
			}
			got := <-heard
			if got.AccessToken.Reveal() != token || cmp.Diff(check.known[token].Scopes, got.Scopes) != "" ||
				got.Origin != check.known[token].Origin || got.Session == "" || string(got.Capabilities) != `{"roots":{}}` {
				t.Errorf("with %s: %+v", token, got)
			}
		}
	}
}

// TestChecksFailClosed: who cannot be checked does not get in, and is not told that their token is wrong.
func TestChecksFailClosed(t *testing.T) {
	check := newRegister()
	url := serveHTTP(t, newFakeDeck(), Options{Authenticator: check, Resource: testResource})
	for _, down := range []error{
		&drawbridge.Fault{Code: drawbridge.Transient, Step: "the issuer cannot be asked", Err: errors.New("canary")},
		errors.New("canary"),
	} {
		check.bring(down)
		for _, token := range []string{"ada-1", "wrong"} {
			resp, err := http.DefaultClient.Do(with(modernRequest(t, url, discover), token))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" ||
				resp.Header.Get("WWW-Authenticate") != "" {
				t.Errorf("%s: status %d, %v", token, resp.StatusCode, resp.Header)
			}
		}
		if status, body := send(t, modernRequest(t, url, discover)); status != 503 || strings.Contains(body, "canary") {
			t.Errorf("without a token: %d %s", status, body)
		}
	}
}

// TestOpenDoor: where nobody has to prove anything, who comes by loopback is the owner, and who comes from elsewhere
// is not.
func TestOpenDoor(t *testing.T) {
	check := newRegister()
	check.open = true
	s := newServer(t, newFakeDeck(), Options{Authenticator: check})
	for _, tt := range []struct {
		l    net.Listener
		want int
	}{{nil, 200}, {farListener{}, 401}} {
		d := s.newHTTPHandler(s.life.Done(), s.life, tt.l)
		r := modernRequest(t, "http://127.0.0.1/mcp", discover)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("on %v: %d", tt.l, w.Code)
		}
	}
	if len(check.asked) > 0 {
		t.Errorf("somebody was checked: %v", check.asked)
	}
	if err := s.CheckListener(farListener{}); err == nil {
		t.Error("an open door beyond loopback")
	}
}

// TestOpenDoorBehindAProxy: a door that is known by a name beyond this machine has callers from there, whatever it
// listens on.
func TestOpenDoorBehindAProxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for url, want := range map[string]int{"https://gate.example/mcp": 401, "http://localhost:80/mcp": 200,
		"http://[::1]/mcp": 200, "": 200} {
		check := newRegister()
		check.open = true
		s := newServer(t, newFakeDeck(), Options{Authenticator: check, Resource: Resource{URL: url}})
		w := httptest.NewRecorder()
		s.newHTTPHandler(s.life.Done(), s.life, l).ServeHTTP(w, modernRequest(t, "http://127.0.0.1/mcp", discover))
		if w.Code != want {
			t.Errorf("%q: %d, want %d", url, w.Code, want)
		}
		if err := s.CheckListener(l); (err == nil) != (want == 200) {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// TestListenersOfIssuers: beyond loopback clients must be able to find out whom to ask for a token.
func TestListenersOfIssuers(t *testing.T) {
	nameless := Resource{Issuers: []string{"https://issuer.example"}, Scopes: []string{"mcp"}}
	s := newServer(t, newFakeDeck(), Options{Authenticator: newRegister(), Resource: nameless, Token: []byte("x")})
	want := "serve on 192.0.2.1:80: beyond loopback an issuer's tokens must name the URL that clients reach this endpoint by (set serve.public_url in drawbridge.toml)"
	if err := s.CheckListener(farListener{}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	check := newRegister()
	check.bring(errors.New("down"))
	if err := newServer(t, newFakeDeck(), Options{Authenticator: check}).CheckListener(farListener{}); err == nil {
		t.Error("a check that is down lets a door open")
	}
	if err := newServer(t, newFakeDeck(), Options{Authenticator: newRegister()}).CheckListener(
		farListener{}); err != nil {
		t.Errorf("with a check: %v", err)
	}
	origin := serveWhole(t, newServer(t, newFakeDeck(), Options{Authenticator: newRegister(), Resource: nameless}))
	_, body := send(t, httpRequest(t, http.MethodGet, origin+bearer.MetadataPath+Path, ""))
	want = fmt.Sprintf(
		`{"resource":"%s/mcp","authorization_servers":["https://issuer.example"],"scopes_supported":["mcp"],"bearer_methods_supported":["header"],"resource_name":"Drawbridge"}`, origin)
	if strings.TrimSpace(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	for _, url := range []string{"gate.example", "file:///x", "https://u@gate.example/mcp",
		"https://gate.example/mcp?x", "https://gate.example/#", "http://gate.example/mcp"} {
		if _, err := New(t.Context(), newFakeDeck(),
			Options{Resource: Resource{URL: url, Issuers: nameless.Issuers}}); err == nil {
			t.Errorf("the resource %s is one", url)
		}
	}
}

// TestPublicHost: what passes requests on from the outside may keep the name that they were sent to.
func TestPublicHost(t *testing.T) {
	origin := serveWhole(t, newServer(t, newFakeDeck(), Options{Authenticator: newRegister(), Resource: testResource}))
	for host, want := range map[string]int{"gate.example": 200, "GATE.example": 200, "evil.example": 403,
		"gate.example.evil.example": 403} {
		for _, r := range []*http.Request{with(modernRequest(t, origin+Path, discover), "ada-1"),
			httpRequest(t, http.MethodGet, origin+bearer.MetadataPath, "")} {
			r.Host = host
			if status, _ := send(t, r); status != want {
				t.Errorf("%s %s: status %d, want %d", host, r.URL.Path, status, want)
			}
		}
	}
}

// TestNothingIsPublicToOneOfSeveral: what one of several callers is told is kept for nobody else, whatever its server
// says.
func TestNothingIsPublicToOneOfSeveral(t *testing.T) {
	d := newFakeDeck()
	d.hint = drawbridge.CacheHint{Public: true}
	d.do = func(context.Context, drawbridge.Call) (drawbridge.Result, error) {
		return drawbridge.Result{Raw: json.RawMessage(`{"contents":[],"ttlMs":7,"cacheScope":"public"}`)}, nil
	}
	url := serveHTTP(t, d, Options{Token: []byte("owner"), Authenticator: newRegister()})
	for _, body := range []string{
		discover, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"test://watched",` + meta + `}}`,
	} {
		for token, want := range map[string]string{"owner": `"cacheScope":"public"`,
			"ada-1": `"cacheScope":"private"`} {
			if _, got := send(t, with(modernRequest(t, url, body), token)); strings.Count(got, `"cacheScope"`) != 1 ||
				!strings.Contains(got, want) {
				t.Errorf("%s is told %s", token, got)
			}
		}
	}
}
