package oauth

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// follow goes up to the callback that the browser would open.
func (y *party) follow(f *Flow) string {
	y.t.Helper()
	callback, err := y.p.SignInRedirect(y.t.Context(), f.url)
	if err != nil || callback == "" {
		y.t.Fatalf("follow: %q, %v", callback, err)
	}
	return callback
}

// testState is row OA-3: a missing, wrong or used state, and one of another sign-in, change nothing.
func testState(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	f := y.begin()
	callback := y.follow(f)
	for name, change := range map[string]func(url.Values){
		"missing":       func(q url.Values) { q.Del("state") },
		"empty":         func(q url.Values) { q.Set("state", "") },
		"wrong":         func(q url.Values) { q.Set("state", "AAAABBBBCCCCDDDDEEEEFFFFGG") },
		"in lower case": func(q url.Values) { q.Set("state", strings.ToLower(q.Get("state"))) },
	} {
		if status, page := get(t, with(t, callback, change)); status != 400 || !strings.Contains(page,
			"State mismatch - possible CSRF attack") {
			t.Errorf("%s: %d, %s", name, status, page)
		}
		if err := y.c.CompleteWithURL(t.Context(), with(t, callback, change)); err == nil ||
			!strings.Contains(err.Error(), "State mismatch") {
			t.Errorf("%s, pasted: %v", name, err)
		}
	}
	if y.c.signed() {
		t.Fatal("signed in")
	}
	if status, page := get(t, callback); status != 200 || !strings.Contains(page, "Authorization successful") {
		t.Fatalf("%d, %s", status, page)
	}
	if err := f.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if status, page := get(t, callback); status != 400 || !strings.Contains(page, "State mismatch") {
		t.Errorf("the second time: %d, %s", status, page)
	}
	if err := y.c.CompleteWithURL(t.Context(), callback); err == nil {
		t.Error("pasted the second time")
	}
	if c := y.p.Counts(); c.Codes != 1 || c.Replays != 0 {
		t.Errorf("%+v", c)
	}
}

// testStateHasItsTime forgets a sign-in that nobody came back from for an hour.
func testStateHasItsTime(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	callback := y.follow(y.begin())
	y.later(pendingTimeout + 1)
	if status, page := get(t, callback); status != 400 || !strings.Contains(page, "State mismatch") || y.c.signed() {
		t.Errorf("%d, %s", status, page)
	}
}

// testStateOfProvider has the provider answer with a state that is not ours.
func testStateOfProvider(t *testing.T) {
	for _, state := range []string{"-", "another"} {
		y := meet(t, oauthtest.Options{Knobs: oauthtest.Knobs{Authorization: oauthtest.Authorization{State: state}}},
			nil)
		if err := y.tryIn(); err == nil || y.c.signed() {
			t.Errorf("state %q: %v", state, err)
		}
	}
}

// testCallbackDoor is row OA-16: who knocks at the callback otherwise than the person's browser changes nothing, and
// does not use up the state.
func testCallbackDoor(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	f := y.begin()
	callback := y.follow(f)
	elsewhere := func(path string) string { return strings.Replace(callback, "/callback?", path+"?", 1) }
	for _, tt := range []struct {
		name, address string
		status        int
		header        []string
	}{
		{"another path", elsewhere("/other"), 404, nil},
		{"the root", elsewhere("/"), 404, nil},
		{"a path below", elsewhere("/callback/x"), 404, nil},
		{"a slash more", elsewhere("/callback/"), 404, nil},
		{"a foreign host", callback, 403, []string{"Host", "evil.example:80"}},
		{"a foreign host that looks near", callback, 403, []string{"Host", "127.0.0.1.evil.example:80"}},
		{"a prefetch", callback, 503, []string{"Sec-Purpose", "prefetch"}},
		{"a prerender", callback, 503, []string{"Sec-Purpose", "prefetch;prerender"}},
		{"a prefetch of old", callback, 503, []string{"Purpose", "prefetch"}},
		{"a prefetch of Firefox's", callback, 503, []string{"X-Moz", "prefetch"}},
		{"a state twice", callback + "&state=x", 400, nil},
		{"a code twice", callback + "&code=x", 400, nil},
		{"an issuer twice", callback + "&iss=x", 400, nil},
		{"an error twice", callback + "&error=x&error=y", 400, nil},
		{"a broken query", callback + "&%zz", 400, nil},
		{"a semicolon", callback + "&a;b", 400, nil},
		{"too much", callback + "&x=" + strings.Repeat("x", maxCallback), 400, nil},
	} {
		if status, page := get(t, tt.address, tt.header...); status != tt.status {
			t.Errorf("%s: %d, %s", tt.name, status, page)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodHead, http.MethodPut, http.MethodOptions} {
		req, _ := http.NewRequestWithContext(t.Context(), method, callback, nil)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
	if y.c.signed() || y.p.Counts().Codes != 0 {
		t.Fatal("signed in")
	}
	resp, err := http.Get(callback)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	h := resp.Header
	if resp.StatusCode != 200 || !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") ||
		h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%d, %v", resp.StatusCode, h)
	}
	if err := f.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// testCallbackPage shows what an authorization server says, and runs none of it.
func testCallbackPage(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	callback := with(t, y.follow(y.begin()), func(q url.Values) {
		q.Del("code")
		q.Set("error", "access_denied")
		q.Set("error_description", "<script>alert(1)</script>\x1b[2J")
	})
	status, page := get(t, callback)
	if status != 400 || strings.Contains(page, "<script>") || strings.Contains(page, "\x1b") || !strings.Contains(page,
		"access_denied") {
		t.Errorf("%d, %s", status, page)
	}
}

// testPaste brings back by hand what the browser ended at.
func testPaste(t *testing.T) {
	for name, form := range map[string]func(string) string{
		"the whole address":       func(s string) string { return s },
		"with blanks around":      func(s string) string { return " \n" + s + "\t\n" },
		"in quotes":               func(s string) string { return `"` + s + `"` },
		"the query":               func(s string) string { _, q, _ := strings.Cut(s, "?"); return q },
		"the query with its mark": func(s string) string { _, q, _ := strings.Cut(s, "?"); return "?" + q },
		"with a fragment":         func(s string) string { return s + "#_=_" },
	} {
		y := meet(t, oauthtest.Options{}, nil)
		f := y.begin()
		if err := f.CompleteWithURL(t.Context(), form(y.follow(f))); err != nil || !y.c.signed() {
			t.Errorf("%s: %v", name, err)
		}
	}
	y := meet(t, oauthtest.Options{}, nil)
	f := y.begin()
	callback := y.follow(f)
	theirs := meet(t, oauthtest.Options{}, nil)
	for name, tt := range map[string]struct{ text, says string }{
		"nothing":           {"", "Missing authorization code"},
		"blanks":            {"  ", "Missing authorization code"},
		"garbage":           {"hello there", "Missing authorization code"},
		"a code alone":      {"code-ABC", "Missing authorization code"},
		"no code":           {with(t, callback, func(q url.Values) { q.Del("code") }), "Missing authorization code"},
		"the first address": {f.url, "Missing authorization code"},
		"somebody else's":   {theirs.follow(theirs.begin()), "State mismatch - possible CSRF attack"},
		"too much":          {strings.Repeat("x", 1<<20), "too long"},
		"a state twice":     {callback + "&state=x", "duplicate parameter"},
	} {
		err := f.CompleteWithURL(t.Context(), tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.CompleteWithURL(t.Context(), callback); err != nil {
		t.Errorf("after all that: %v", err)
	}
	if err := f.Wait(t.Context()); err != nil {
		t.Errorf("who waits: %v", err)
	}
}

// TestProviderSaysNo has the person, or the provider, say no.
func TestProviderSaysNo(t *testing.T) {
	for code, says := range map[string]string{"access_denied": "Authorization failed",
		"server_error": "Authorization failed", "login_required": "Authorization failed"} {
		y := meet(t, oauthtest.Options{Knobs: oauthtest.Knobs{Authorization: oauthtest.Authorization{Error: code}}},
			nil)
		if err := y.tryIn(); err == nil || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), code) {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// taken is a port that somebody else has.
func taken(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// testCallbackPort is the port squatting of row OA-16.
func testCallbackPort(t *testing.T) {
	port := taken(t)
	at := strconv.Itoa(port)
	fixed := "OAuth callback port " + at +
		" unavailable; cannot fall back to a random port when oauth.redirectUri is set"
	y := meet(t, oauthtest.Options{}, func(s *Server) { s.RedirectURI = "http://localhost:" + at + "/callback" })
	if _, err := y.c.Begin(t.Context()); err == nil || err.Error() != fixed {
		t.Errorf("with a redirect URI: %v", err)
	}
	y.again(func(s *Server) { s.CallbackPort, s.CallbackPath = port, "back" })
	f := y.begin()
	if strings.Contains(f.url, at) || !strings.Contains(f.url, url.QueryEscape("/back")) {
		t.Errorf("with a port alone: %s", f.url)
	}
	if err := y.p.AllowSignIn(t.Context(), f.url); err != nil {
		t.Error(err)
	}

	y = meet(t, oauthtest.Options{}, nil)
	y.signIn()
	r := y.kept()
	if len(r.Client.Redirects) != 1 {
		t.Fatal(r.Client.Redirects)
	}
	u, _ := url.Parse(r.Client.Redirects[0])
	y.desk.Close()
	l, err := net.Listen("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	y.again(nil)
	y.signIn()
}

// testRedirectURI is row OA-2 from the client's side: it is the same to the byte in all that we say of it.
func testRedirectURI(t *testing.T) {
	for _, name := range []string{"127.0.0.1", "localhost"} {
		y := meet(t, oauthtest.Options{Knobs: oauthtest.Knobs{Authorization: oauthtest.Authorization{ExactPort: true}}},
			nil)
		if name == "localhost" {
			y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Registration.RejectRedirects = []string{"127.0.0.1"} })
		}
		for range 2 {
			y.signIn()
		}
		var all []string
		for _, r := range y.p.Requests(oauthtest.Authorize) {
			all = append(all, r.Query.Get("redirect_uri"))
		}
		for _, r := range y.p.Requests(oauthtest.TokenByCode, oauthtest.Token) {
			all = append(all, r.Form.Get("redirect_uri"))
		}
		for _, got := range all {
			if got != all[0] || !strings.HasPrefix(got, "http://"+name+":") || !strings.HasSuffix(got, "/callback") {
				t.Errorf("%q", all)
			}
		}
		if n := y.p.Registrations(); n != 1 {
			t.Errorf("%s: %d registrations", name, n)
		}
	}
}

// testRedirectURIOfRow is what a row may say of the way back.
func testRedirectURIOfRow(t *testing.T) {
	y := meet(t, oauthtest.Options{}, func(s *Server) { s.RedirectURI = "https://tunnel.example/oauth" })
	f := y.begin()
	if err := f.CompleteWithURL(t.Context(), y.follow(f)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"javascript:alert(1)", "http://evil.example/x", "data:,x",
		"http://user@127.0.0.1:1/x", "://"} {
		y := meet(t, oauthtest.Options{}, func(s *Server) { s.RedirectURI = bad })
		if _, err := y.c.Begin(t.Context()); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// TestClose ends the way back and those who wait there.
func TestClose(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	callback := y.follow(y.begin())
	y.desk.Close()
	if resp, err := http.Get(callback); err == nil {
		_ = resp.Body.Close()
		t.Errorf("somebody is there: %d", resp.StatusCode)
	}
	if _, err := y.c.Begin(t.Context()); err == nil {
		t.Error("begun after the end")
	}
}
