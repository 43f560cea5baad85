package upstream

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/google/go-cmp/cmp"
)

// kept is a keychain of one name.
type kept struct{ name, value string }

func (k kept) Get(name string) ([]byte, error) {
	if name != k.name {
		return nil, errors.New("nothing has that name")
	}
	return []byte(k.value), nil
}

func deferred(name string, parts ...config.ValuePart) config.DeferredValue {
	return config.DeferredValue{Name: name, Parts: parts}
}

// endpointOf makes an endpoint of a row that nobody connects to.
func endpointOf(t *testing.T, row config.Server) *managedServer {
	t.Helper()
	p, err := NewPool(t.Context(), Options{Keeper: kept{"one", "k3pt"}})
	if err != nil {
		t.Fatal(err)
	}
	return newManagedServer(p, row, "", FleetOptions{Environ: os.Environ()})
}

func TestValuesThatAreReferences(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) config.ValuePart {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.ValuePart{Kind: config.FilePart, Text: path}
	}
	command := func(text string) config.ValuePart { return config.ValuePart{Kind: config.CommandPart, Text: text} }
	text := func(text string) config.ValuePart { return config.ValuePart{Text: text} }
	e := endpointOf(t, config.Server{ID: "a", Command: "a", Phase: drawbridge.Idle,
		DeferredValues: []config.DeferredValue{
			deferred("env GIVEN", command("echo given")),
			deferred("env MISSING", command("exit 3")),
			deferred("env FILE", text("a "), file("file", "f1le\r\n\n"), text(" ${file:b}")),
			deferred("env LINES", file("lines", "one\ntwo\n")),
			deferred("env NUL", file("nul", "on\x00e")),
			deferred("env KEPT", config.ValuePart{Kind: config.KeychainPart, Text: "one"}),
			deferred("env LOST", text("s3cret"), config.ValuePart{Kind: config.KeychainPart, Text: "two"}),
			deferred("env GONE", config.ValuePart{Kind: config.FilePart, Text: filepath.Join(dir, "gone")}),
			deferred("header X", file("again", "${file:x}!y")),
			deferred("header LINES", file("more", "one\ntwo")),
		}})
	pairs := []config.NameValue{
		{Name: "PLAIN", Value: "!not a command"}, {Name: "GIVEN", Value: "!echo given"},
		{Name: "MISSING", Value: "!exit 3"}, {Name: "FILE"},
		{Name: "LINES"}, {Name: "NUL"}, {Name: "KEPT"}, {Name: "LOST"}, {Name: "GONE"},
	}
	want := []config.NameValue{
		{Name: "PLAIN", Value: "!not a command"}, {Name: "GIVEN", Value: "given"},
		{Name: "FILE", Value: "a f1le ${file:b}"},
		{Name: "LINES", Value: "one\ntwo"}, {Name: "KEPT", Value: "k3pt"},
	}
	if diff := cmp.Diff(want, e.resolveValues(t.Context(), "env", pairs)); diff != "" {
		t.Error(diff)
	}
	notes := []string{
		"env MISSING is left out: the command ended with exit status 3",
		"env NUL is left out: the value contains a line break or another control character",
		`env LOST is left out: find "two" in the keychain: nothing has that name`,
		"env GONE is left out: the file " + filepath.Join(dir, "gone") + " is not there",
	}
	if diff := cmp.Diff(notes, e.status().Notes); diff != "" {
		t.Error(diff)
	}
	want = []config.NameValue{{Name: "X", Value: "${file:x}!y"}}
	if diff := cmp.Diff(want, e.resolveValues(t.Context(), "header", []config.NameValue{{Name: "X"},
		{Name: "LINES"}})); diff != "" {
		t.Error(diff)
	}
	if notes := e.status().Notes; len(notes) != 1 || !strings.HasPrefix(notes[0], "header LINES is left out") {
		t.Errorf("the status notes %q", notes)
	}
}

func TestAuthThatRefers(t *testing.T) {
	row := config.Server{ID: "a", URL: "https://h", Phase: drawbridge.Idle, Auth: &config.Auth{ClientID: "id",
		ClientSecret: "${keychain:one}"}}
	row.DeferredValues = []config.DeferredValue{deferred("auth client_secret",
		config.ValuePart{Kind: config.KeychainPart, Text: "one"})}
	auth, err := endpointOf(t, row).resolveAuth(t.Context())
	if diff := cmp.Diff(config.Auth{ClientID: "id", ClientSecret: "k3pt"}, auth); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if row.Auth.ClientSecret != "${keychain:one}" {
		t.Error("the row has the secret now")
	}
	row.DeferredValues[0].Parts[0].Text = "two"
	_, err = endpointOf(t, row).resolveAuth(t.Context())
	if want := `find the client_secret in "auth": find "two" in the keychain: nothing has that name`; err == nil ||
		err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	row.Auth = nil
	if auth, err := endpointOf(t, row).resolveAuth(t.Context()); err != nil || !cmp.Equal(auth, config.Auth{}) {
		t.Error(auth, err)
	}
}

func TestTheStoredKeyOfARow(t *testing.T) {
	auth := func(a config.Auth) *config.Auth {
		a.Type = "apikey"
		return &a
	}
	for name, c := range map[string]struct {
		row    config.Server
		member string
		want   []config.NameValue
	}{
		"bearer": {config.Server{URL: "https://h", Auth: auth(config.Auth{CredentialID: "one"})}, "header",
			[]config.NameValue{{Name: "X-Other", Value: "o"}, {Name: "Authorization", Value: "Bearer k3pt"}}},
		"header": {config.Server{URL: "https://h", Auth: auth(config.Auth{CredentialID: "one", Header: "x-other"})},
			"header", []config.NameValue{{Name: "x-other", Value: "k3pt"}}},
		"variable": {config.Server{Command: "c", Auth: auth(config.Auth{CredentialID: "one", Variable: "KEY"})}, "env",
			[]config.NameValue{{Name: "X-Other", Value: "o"}, {Name: "KEY", Value: "k3pt"}}},
		"no name": {config.Server{URL: "https://h", Auth: auth(config.Auth{})}, "header",
			[]config.NameValue{{Name: "X-Other", Value: "o"}}},
	} {
		e := endpointOf(t, c.row)
		got, err := e.withKey(t.Context(), c.member, []config.NameValue{{Name: "X-Other", Value: "o"}})
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}
	e := endpointOf(t, config.Server{ID: "a", URL: "https://h", Auth: auth(config.Auth{CredentialID: "two"})})
	err := newSession(e, e.primaryKey()).dialHTTP(t.Context(), nil, false)
	const want = `the credential "two", named in "auth", has no key`
	if err == nil || !strings.Contains(err.Error(), want) || e.mountFault("connect", err).Code != drawbridge.AuthFailure {
		t.Errorf("without the key: %v", err)
	}
}
