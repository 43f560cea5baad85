package oauth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// A party is a provider, a desk and one credential for what the provider guards.
type party struct {
	t     *testing.T
	p     *oauthtest.Provider
	desk  *Manager
	c     *Credential
	vault Vault
	log   *logged
	ahead atomic.Int64 // how far our clock is ahead
}

// meet starts a party; change may be nil.
func meet(t *testing.T, o oauthtest.Options, change func(*Server)) *party {
	t.Helper()
	y := &party{t: t, p: oauthtest.New(t, o), vault: newMemoryVault(), log: &logged{}}
	y.again(change)
	return y
}

// again has a desk and a credential anew, as a process has that starts now.
func (y *party) again(change func(*Server)) {
	s := Server{ID: "protected", URL: y.p.ResourceURL}
	if change != nil {
		change(&s)
	}
	y.desk = NewManager(ManagerOptions{
		Vault: y.vault, Logger: slog.New(y.log),
		Now: func() time.Time { return time.Now().Add(time.Duration(y.ahead.Load())) },
	})
	y.t.Cleanup(y.desk.Close)
	y.c = y.desk.Credential(s, nil)
}

func (y *party) later(d time.Duration) { y.ahead.Add(int64(d)) }

// begin begins a sign-in.
func (y *party) begin() *Flow {
	y.t.Helper()
	f, err := y.c.Begin(y.t.Context())
	if err != nil {
		y.t.Fatalf("begin: %v", err)
	}
	return f
}

// signIn goes the whole way of a person.
func (y *party) signIn() {
	y.t.Helper()
	f := y.begin()
	if err := y.p.AllowSignIn(y.t.Context(), f.url); err != nil {
		y.t.Fatal(err)
	}
	if err := f.Wait(y.t.Context()); err != nil {
		y.t.Fatal(err)
	}
}

// tryIn goes the way of a person and gives what they hear.
func (y *party) tryIn() error {
	y.t.Helper()
	f, err := y.c.Begin(y.t.Context())
	if err != nil {
		return err
	}
	visited := y.p.AllowSignIn(y.t.Context(), f.url)
	select {
	case <-f.ended.done:
		return signInError(f.ended.err)
	default:
		return errors.Join(errors.New("nobody came back"), visited)
	}
}

// call asks the MCP server as a connection does, for a tool. The error is of the credential; a status of 400 is what
// the server says to whom it lets in, since nothing was said before.
func (y *party) call(tool string) (status int, err error) { return ask(y.t.Context(), y.c, tool) }

func ask(ctx context.Context, c *Credential, tool string) (status int, err error) {
	token, err := c.Token(ctx)
	if err != nil {
		return 0, err
	}
	for tries := 0; ; tries++ {
		resp, body, err := once(ctx, c.server.URL, token, tool)
		if err != nil {
			return 0, err
		}
		if tries == 2 || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp.StatusCode, nil
		}
		if token, err = c.ReplaceToken(ctx, token, resp.StatusCode, resp.Header, body); err != nil || token == "" {
			return resp.StatusCode, err
		}
	}
}

func once(ctx context.Context, address, token, tool string) (*http.Response, []byte, error) {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `"}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp, data, err
}

// in checks that the server lets us in.
func (y *party) in() {
	y.t.Helper()
	if status, err := y.call("whoami"); err != nil || status == 401 || status == 403 {
		y.t.Errorf("the server said %d, %v", status, err)
	}
}

// needed checks that a person has to sign in, and gives the error.
func (y *party) needed() *SignInRequiredError {
	y.t.Helper()
	_, err := y.call("whoami")
	n := SignInRequired(err)
	if n == nil {
		y.t.Fatalf("got %v; want a sign-in to be needed", err)
	}
	return n
}

// kept is what the vault has.
func (y *party) kept() credentialRecord {
	y.t.Helper()
	r, err := y.c.currentRecord()
	if err != nil {
		y.t.Fatal(err)
	}
	return r
}

// wants checks that an error says something.
func wants(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v; want it to say %q", err, text)
	}
}

// get opens an address as a browser does, and gives the status and the page.
func get(t *testing.T, address string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
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

// with is an address with its query changed.
func with(t *testing.T, address string, change func(url.Values)) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	change(q)
	u.RawQuery = q.Encode()
	return u.String()
}

// A logged is all that was logged, at every level.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs(attrs []slog.Attr) slog.Handler { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }
func (l *logged) Handle(ctx context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slog.NewJSONHandler(&l.text, &slog.HandlerOptions{Level: slog.LevelDebug}).Handle(ctx, r)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// realVault is a vault of files, without the keychain.
func realVault(dir string) (*secrets.Vault, error) {
	return secrets.OpenVault(dir, secrets.VaultOptions{NoKeychain: true})
}

func withCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

func newServer(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func bodyOf(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }

// signed says whether there is a token, good or not.
func (c *Credential) signed() bool {
	r, err := c.currentRecord()
	return err == nil && r.Access != ""
}
