package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/google/go-cmp/cmp"
)

// A box keeps values in memory, up to a number of them; it may lose what it is given.
type box struct {
	kept   map[string]string
	most   int
	forget bool
	away   bool
}

func (b *box) Get(name string) ([]byte, error) {
	if b.away {
		return nil, secrets.ErrKeychainUnavailable
	}
	value, ok := b.kept[name]
	if !ok {
		return nil, secrets.ErrNotFound
	}
	return []byte(value), nil
}

func (b *box) Put(name string, value []byte) error {
	switch {
	case b.kept == nil:
		b.kept = map[string]string{}
	case b.most > 0 && len(b.kept) == b.most:
		return errors.New("it is full")
	}
	if !b.forget {
		b.kept[name] = string(value)
	}
	return nil
}

func (b *box) Delete(name string) error {
	delete(b.kept, name)
	return nil
}

func TestKeep(t *testing.T) {
	env := func(name string) (string, bool) { return "x", name == "a variable" }
	const row = `{"command": "x", "args": ["--token", "s3cret-arg"], "env": {"A_TOKEN": "s3cret-a", "B/TOKEN": "s3cret-b", "C_TOKEN": "${C}",
		"D_TOKEN": "!pass d", "E_TOKEN": "a variable", "MODE": "fast"}, "headers": {"Authorization": "bearer  s3cret h", "Cookie": "s3cret-cookie"},
		"auth": {"client_secret": "s3cret-client", "token": "s3cret-token"}}`
	b := &box{kept: map[string]string{"srv.A_TOKEN": "another", "srv.A_TOKEN-2": "s3cret-a",
		"srv.Cookie": "s3cret-cookie"}}
	kept, err := MoveRowSecrets(b, "srv", json.RawMessage(row), env)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"srv.client_secret", "srv.A_TOKEN-2", "srv.B_TOKEN", "srv.Authorization", "srv.Cookie"}
	if diff := cmp.Diff(names, kept.Names); diff != "" {
		t.Error(diff)
	}
	want := strings.NewReplacer(`"s3cret-a"`, `"${keychain:srv.A_TOKEN-2}"`, "s3cret-b", "${keychain:srv.B_TOKEN}",
		"s3cret h", "${keychain:srv.Authorization}",
		"s3cret-cookie", "${keychain:srv.Cookie}", "s3cret-client", "${keychain:srv.client_secret}").Replace(row)
	if diff := cmp.Diff(want, string(kept.Row)); diff != "" {
		t.Error(diff)
	}
	if n, left := CountMovableSecrets(json.RawMessage(row), env), CountMovableSecrets(kept.Row,
		env); n != 5 || left != 0 {
		t.Errorf("%d could be moved, and now %d", n, left)
	}
	values := map[string]string{
		"srv.A_TOKEN": "another", "srv.A_TOKEN-2": "s3cret-a", "srv.B_TOKEN": "s3cret-b",
		"srv.Authorization": "s3cret h",
		"srv.Cookie":        "s3cret-cookie", "srv.client_secret": "s3cret-client",
	}
	if diff := cmp.Diff(values, b.kept); diff != "" {
		t.Error(diff)
	}
	if err := kept.Undo(); err != nil {
		t.Error(err)
	}
	if got := slices.Sorted(maps.Keys(b.kept)); !slices.Equal(got, []string{"srv.A_TOKEN", "srv.A_TOKEN-2",
		"srv.Cookie"}) {
		t.Errorf("undone, there are %q", got)
	}
}

// TestKeepOrNot: what cannot be kept, or does not come back, leaves the row and the keeper as they were.
func TestKeepOrNot(t *testing.T) {
	const row = `{"command": "x", "env": {"A_TOKEN": "s3cret-a", "B_TOKEN": "s3cret-b"}}`
	for name, tt := range map[string]struct {
		box  *box
		want string
	}{
		"it is full": {&box{kept: map[string]string{"other": "x"}, most: 2}, "keep B_TOKEN of srv: it is full"},
		"it forgets": {&box{forget: true}, "keep A_TOKEN of srv: what was kept does not come back"},
		"it is away": {&box{away: true}, "keep A_TOKEN of srv: the keychain is away"},
		"all are theirs": {&box{kept: allTaken("srv.A_TOKEN")},
			`keep A_TOKEN of srv: 100 names like "srv.A_TOKEN" keep other values`},
	} {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(tt.box.kept)
			kept, err := MoveRowSecrets(tt.box, "srv", json.RawMessage(row),
				func(string) (string, bool) { return "", false })
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			if string(kept.Row) != row || len(kept.Names) > 0 {
				t.Errorf("%q, %s", kept.Names, kept.Row)
			}
			if !maps.Equal(before, tt.box.kept) {
				t.Errorf("it has %v", tt.box.kept)
			}
		})
	}
}

func allTaken(name string) map[string]string {
	taken := map[string]string{name: "x"}
	for i := range 99 {
		taken[fmt.Sprintf("%s-%d", name, i+2)] = "x"
	}
	return taken
}

func TestMoveSecretsWithoutAKeeper(t *testing.T) {
	dir := t.TempDir()
	lookup := func(name string) (string, bool) { return dir, name == "HOME" }
	r := New(Options{ConfigOptions: config.Options{Dir: dir, LookupEnv: lookup}})
	q := AddRequest{Name: "a", Scope: config.OriginUser, Command: "x",
		Env: []config.NameValue{{Name: "A_TOKEN", Value: "s3cret-a"}}, MoveSecrets: true}
	if _, err := r.AddServer(t.Context(), q); err == nil ||
		err.Error() != "Failed to add server: there is nothing here that keeps secrets" {
		t.Error(err)
	}
	q.MoveSecrets = false
	if _, err := r.AddServer(t.Context(), q); err != nil {
		t.Error(err)
	}
	if _, err := r.MoveSecrets(t.Context(), "a"); !errors.Is(err, errNoSecretStore) {
		t.Error(err)
	}
	if _, err := r.MoveSecrets(t.Context(), drawbridge.ServerID("b")); err == nil || !strings.Contains(err.Error(),
		`Server "b" not found`) {
		t.Error(err)
	}
}
