package gateway

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

func TestWhereTheStoreIs(t *testing.T) {
	env := func(pairs ...string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1], true
				}
			}
			return "", false
		}
	}
	for _, tt := range []struct {
		name     string
		flag     string
		settings config.Settings
		env      func(string) (string, bool)
		want     string
	}{
		{"the flag", "x.db", config.Settings{StorePath: "/y.db"}, env(), "x.db"},
		{"a setting", "", config.Settings{StorePath: "/y.db"}, env(), "/y.db"},
		{"another setting", "", config.Settings{StoreURL: "postgres://db/x"}, env(), "postgres://db/x"},
		{"the state directory", "", config.Settings{}, env("XDG_STATE_HOME", "/state", "HOME", "/home/ada"),
			"/state/drawbridge/drawbridge.db"},
		{"a relative one is to be ignored", "", config.Settings{}, env("XDG_STATE_HOME", "state", "HOME", "/home/ada"),
			"/home/ada/.local/state/drawbridge/drawbridge.db"},
		{"home", "", config.Settings{}, env("HOME", "/home/ada"), "/home/ada/.local/state/drawbridge/drawbridge.db"},
	} {
		got, err := StoreLocation(tt.flag, tt.settings, tt.env)
		if err != nil || filepath.ToSlash(got) != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	_, err := StoreLocation("", config.Settings{}, env())
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.InvalidInput ||
		f.Next != "--store PATH" {
		t.Errorf("without a home: %v", err)
	}
}

func TestWhereTheVaultIs(t *testing.T) {
	env := func(home string) func(string) (string, bool) {
		return func(name string) (string, bool) { return map[string]string{"HOME": home}[name], name == "HOME" }
	}
	here, err := filepath.Abs("vault")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		flag     string
		settings config.Settings
		home     string
		want     string
	}{
		{"beside the flag's file", "/data/x.db", config.Settings{}, "/home/ada", "/data/vault"},
		{"beside one in the working directory", "x.db", config.Settings{}, "/home/ada", filepath.ToSlash(here)},
		{"beside the setting's", "", config.Settings{StorePath: "/y/z.db"}, "", "/y/vault"},
		{"beside the usual one", "", config.Settings{}, "/home/ada", "/home/ada/.local/state/drawbridge/vault"},
		{"the store is a database", "", config.Settings{StoreURL: "postgres://db/x"}, "/home/ada",
			"/home/ada/.local/state/drawbridge/vault"},
		{"the store is nowhere", MemoryStore, config.Settings{StorePath: "/y/z.db"}, "/home/ada",
			"/home/ada/.local/state/drawbridge/vault"},
	} {
		got, err := vaultDir(tt.flag, tt.settings, env(tt.home))
		if err != nil || filepath.ToSlash(got) != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	if _, err := vaultDir(MemoryStore, config.Settings{}, env("")); err == nil {
		t.Error("without a home there is a place")
	}
}

func TestTheVaultOfAGround(t *testing.T) {
	env := map[string]string{KeychainVariable: "off", "HOME": t.TempDir()}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	open := func(store string) (*Shared, error) {
		return OpenShared(t.Context(), Config{Store: store, LookupEnv: lookup, Dir: t.TempDir()})
	}
	dir := t.TempDir()
	ground, err := open(filepath.Join(dir, "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := ground.Vault().Put("a", []byte("x")); err != nil {
		t.Error(err)
	}
	if err := ground.Close(); err != nil {
		t.Error(err)
	}
	same, err := OpenVault(Config{Store: filepath.Join(dir, "x.db"), LookupEnv: lookup, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := same.Get("a"); string(got) != "x" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	all, err := same.List()
	if err != nil || len(all) != 1 || all[0].KeyLocation != secrets.InFile {
		t.Errorf("with the keychain turned off: %v, %v", all, err)
	}

	env["HOME"] = ""
	if ground, err = open(MemoryStore); err != nil {
		t.Fatal("a gateway that remembers nothing needs no home: ", err)
	}
	if err := ground.Vault().Put("a", []byte("x")); err == nil || !strings.Contains(err.Error(),
		"the home directory is unknown") {
		t.Error(err)
	}
	if err := ground.Close(); err != nil {
		t.Error(err)
	}
	env[KeychainVariable] = "no"
	_, err = open(filepath.Join(dir, "x.db"))
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.InvalidInput {
		t.Errorf("a word that is neither: %v", err)
	}
}

func TestEachConfigurationHasAStream(t *testing.T) {
	if got := LedgerStream(config.Configuration{}, nil, "/work"); got != "deck" {
		t.Errorf("the usual files: %q, want deck", got)
	}
	named := LedgerStream(config.Configuration{}, []string{"a.json", "b.json"}, "/work")
	if len(named) != len("deck:")+8 || !strings.HasPrefix(named, "deck:") {
		t.Errorf("named files: %q", named)
	}
	if got := LedgerStream(config.Configuration{}, []string{"a.json, /work/x/../b.json"}, "/work"); got != named {
		t.Errorf("the same files in other words: %q, want %q", got, named)
	}
	program := configStream(Config{Servers: []config.Server{{ID: "a"}}}, config.Configuration{})
	for _, other := range []string{LedgerStream(config.Configuration{}, []string{"b.json", "a.json"}, "/work"),
		LedgerStream(config.Configuration{}, []string{"a.json", "b.json"}, "/"), program, "deck"} {
		if other == named {
			t.Errorf("other files have the same stream %q", other)
		}
	}
}

func TestRowsOfAProgramAreChecked(t *testing.T) {
	good, err := completeRow(config.Server{ID: "fs", Command: "fs-server",
		Env: []config.NameValue{{Name: "TOKEN", Value: "secret"}}}, nil)
	if err != nil || good.Type != "stdio" || good.Phase != drawbridge.Idle || len(good.Hash) != 64 {
		t.Fatalf("row %+v, %v", good, err)
	}
	rotated := good
	rotated.Hash, rotated.Env = "", []config.NameValue{{Name: "TOKEN", Value: "another"}}
	if rotated, _ = completeRow(rotated, nil); rotated.Hash != good.Hash {
		t.Error("a secret is part of the hash")
	}
	for _, tt := range []struct {
		row  config.Server
		want string
	}{
		{config.Server{Command: "x"}, `add server "": Server name cannot be empty`},
		{config.Server{ID: "fs", Command: "x"}, `add server "fs": the name is taken`},
		{config.Server{ID: "x"}, `add server "x": either Command or URL is needed`},
		{config.Server{ID: "x", Command: "x", URL: "http://x"}, `add server "x": either Command or URL is needed`},
	} {
		if _, err := completeRow(tt.row, []config.Server{good}); err == nil || err.Error() != tt.want {
			t.Errorf("error is %v, want %q", err, tt.want)
		}
	}
}

// TestFilesThatSettingsNameAreOurs: what a setting names as a key, a token or a lock no tool is led to.
func TestFilesThatSettingsNameAreOurs(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	s := config.Settings{TokenFile: at("token"), LockFile: at("lock"),
		OAuth: config.OAuthSettings{IntrospectionSecretFile: at("secret")}}
	s.Audit.KeyFile = at("key")
	o := collectOwnFiles(Config{Dir: dir, Paths: []string{at("rows.json")}, LookupEnv: func(string) (string,
		bool) {
		return "", false
	}}, config.Configuration{Settings: s})
	for _, name := range []string{"token", "lock", "secret", "key", "rows.json", ".mcp.json",
		".drawbridge/drawbridge.toml"} {
		if !slices.Contains(o.Paths, at(filepath.FromSlash(name))) {
			t.Errorf("%s is not among %v", name, o.Paths)
		}
	}
}
