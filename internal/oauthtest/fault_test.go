package oauthtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
	"github.com/google/go-cmp/cmp"
)

func TestFaults(t *testing.T) {
	p := oauthtest.New(t, registered(oauthtest.Knobs{}))
	old := text(tokens(t, p), "refresh_token")
	fail := func(e oauthtest.Endpoint, f oauthtest.Fault) {
		p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{e: f} })
	}

	fail(oauthtest.TokenByRefresh, oauthtest.Fault{Times: 1, Status: 503, Type: "text/html", Body: "<h1>{issuer}</h1>",
		Header: map[string]string{"Retry-After": "1"}})
	a := post(t, p, oauthtest.Token, renew(p, old))
	if a.Status != 503 || a.Type != "text/html" || a.Text != "<h1>"+p.Issuer+"</h1>" ||
		a.Header.Get("Retry-After") != "1" {
		t.Errorf("%d %s %s", a.Status, a.Type, a.Text)
	}
	next := post(t, p, oauthtest.Token, renew(p, old))
	if next.Status != 200 {
		t.Fatalf("the fault happened twice: %d %s", next.Status, next.Text)
	}

	fail(oauthtest.Token, oauthtest.Fault{After: true, Drop: true})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL(oauthtest.Token),
		strings.NewReader(renew(p, text(next, "refresh_token")).Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if response, err := p.HTTP().Do(r); err == nil {
		response.Body.Close()
		t.Error("an answer that was to be lost came")
	}
	if diff := cmp.Diff(2, p.Refreshes()); diff != "" {
		t.Error(diff)
	}
}

func TestSlow(t *testing.T) {
	p := oauthtest.New(t,
		oauthtest.Options{Knobs: oauthtest.Knobs{Faults: map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.ServerMetadata: {Slow: time.Hour}}}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL(oauthtest.ServerMetadata), nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := p.HTTP().Do(r); err == nil {
		response.Body.Close()
		t.Error("it was not slow")
	}
}

// TestGateBetweenRefreshAndAnswer is where a client dies: its refresh was granted, and it never hears of it.
func TestGateBetweenRefreshAndAnswer(t *testing.T) {
	p := oauthtest.New(t, registered(oauthtest.Knobs{}))
	old := text(tokens(t, p), "refresh_token")
	gate := p.Hold(oauthtest.TokenByRefresh, oauthtest.AfterHandling)
	ctx, die := context.WithCancel(t.Context())
	died := make(chan error)
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL(oauthtest.Token),
			strings.NewReader(renew(p, old).Encode()))
		if err == nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			var response *http.Response
			if response, err = p.HTTP().Do(r); err == nil {
				err = response.Body.Close()
			}
		}
		died <- err
	}()
	<-gate.Arrived
	die()
	if err := <-died; err == nil {
		t.Error("the answer came through the gate")
	}
	gate.Open()
	again := post(t, p, oauthtest.Token, renew(p, old))
	if p.Counts().Refreshes != 1 || text(again, "error") != "invalid_grant" {
		t.Errorf("%d refreshes, then %s", p.Counts().Refreshes, again.Text)
	}
}

func TestGateBefore(t *testing.T) {
	p := oauthtest.New(t, registered(oauthtest.Knobs{}))
	old := text(tokens(t, p), "refresh_token")
	gate := p.Hold(oauthtest.Token, oauthtest.BeforeHandling)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { post(t, p, oauthtest.Token, renew(p, old)) })
	}
	for range 3 {
		<-gate.Arrived
	}
	if n := p.Refreshes(); n != 0 {
		t.Errorf("%d refreshes behind a gate that is closed", n)
	}
	gate.Open()
	all.Wait()
	if diff := cmp.Diff([]int{1, 2}, []int{p.Counts().Refreshes, p.Counts().Refusals}); diff != "" {
		t.Error(diff)
	}
}

func TestRequestsAreRecorded(t *testing.T) {
	p := oauthtest.New(t, registered(oauthtest.Knobs{}))
	old := text(tokens(t, p), "refresh_token")
	post(t, p, oauthtest.Token, renew(p, "made up"))
	post(t, p, oauthtest.Token, renew(p, old))
	get(t, p, p.Issuer+"/nothing/here")
	type brief struct {
		Endpoint oauthtest.Endpoint
		Path     string
		Grant    string
		Status   int
	}
	var got []brief
	for _, r := range p.Requests(oauthtest.Token, oauthtest.Nothing) {
		got = append(got, brief{r.Endpoint, r.Path, r.Form.Get("grant_type"), r.Status})
	}
	want := []brief{
		{oauthtest.Token, "/token", "authorization_code", 200}, {oauthtest.Token, "/token", "refresh_token", 400},
		{oauthtest.Token, "/token", "refresh_token", 200},
		{oauthtest.Nothing, "/nothing/here", "", 404},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// idpCommand runs the command in a process of its own.
func idpCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = append(os.Environ(), oauthtest.Variable+"=1", "GORACE=atexit_sleep_ms=0")
	return c
}

// TestCommand is a provider in another process, and the commands that ask it.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	server := idpCommand(t, "serve", "-dir", dir, "-options", `{"Clients":[{"ID":"public","Redirects":["`+callback+
		`"]}]}`, "-knobs", `{"Tokens":{"Life":"2m"}}`)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		var out, problem bytes.Buffer
		if code := oauthtest.Main(t.Context(), args, &out, &problem); code != 0 {
			t.Fatalf("idp %s: exit code %d: %s", strings.Join(args, " "), code, problem.String())
		}
		return strings.TrimSpace(out.String())
	}
	run("wait", filepath.Join(dir, "resource"))
	issuer := "@" + filepath.Join(dir, "issuer")
	run("turn", issuer, `{"Tokens":{"NoType":true},"User":"grace"}`)
	var knobs, want oauthtest.Knobs
	want.Tokens.Life, want.Tokens.NoType, want.User = 2*time.Minute, true, "grace"
	if err := json.Unmarshal([]byte(run("knobs", "@"+filepath.Join(dir, "resource"))), &knobs); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, knobs); diff != "" {
		t.Error(diff)
	}
	text, err := os.ReadFile(filepath.Join(dir, "issuer"))
	if err != nil {
		t.Fatal(err)
	}
	p := &oauthtest.Provider{Issuer: strings.TrimSpace(string(text)),
		ResourceURL: strings.TrimSpace(readFile(t, dir, "resource"))}
	link := filepath.Join(dir, "link")
	if err := os.WriteFile(link, []byte("See http://127.0.0.1:1/ and then\n  "+p.Issuer+"/authorize?"+
		question(p).Encode()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if at := run("follow", "@"+link); !strings.HasPrefix(at, callback+"?code=") {
		t.Errorf("follow gave %s", at)
	}
	var counts oauthtest.Counts
	if err := json.Unmarshal([]byte(run("counts", issuer)), &counts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(oauthtest.Counts{Authorizations: 1}, counts); diff != "" {
		t.Error(diff)
	}
	if code := oauthtest.Main(t.Context(), []string{"turn", issuer, `{"Typo":1}`}, os.Stdout,
		new(bytes.Buffer)); code != 1 {
		t.Errorf("a knob that is none: exit code %d", code)
	}
	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the provider ended with %v", err)
	}
}

func readFile(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
