package gateway

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
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
		{"the state directory", "", config.Settings{}, env("XDG_STATE_HOME", "/state", "HOME", "/home/ada"), "/state/drawbridge/drawbridge.db"},
		{"a relative one is to be ignored", "", config.Settings{}, env("XDG_STATE_HOME", "state", "HOME", "/home/ada"), "/home/ada/.local/state/drawbridge/drawbridge.db"},
		{"home", "", config.Settings{}, env("HOME", "/home/ada"), "/home/ada/.local/state/drawbridge/drawbridge.db"},
	} {
		got, err := StoreLocation(tt.flag, tt.settings, tt.env)
		if err != nil || filepath.ToSlash(got) != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	_, err := StoreLocation("", config.Settings{}, env())
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.InvalidInput || f.Next != "--store PATH" {
		t.Errorf("without a home: %v", err)
	}
}

func TestEachConfigurationHasAStream(t *testing.T) {
	if got := Stream(config.Set{}, nil, "/work"); got != "deck" {
		t.Errorf("the usual files: %q, want deck", got)
	}
	named := Stream(config.Set{}, []string{"a.json", "b.json"}, "/work")
	if len(named) != len("deck:")+8 || !strings.HasPrefix(named, "deck:") {
		t.Errorf("named files: %q", named)
	}
	if got := Stream(config.Set{}, []string{"a.json, /work/x/../b.json"}, "/work"); got != named {
		t.Errorf("the same files in other words: %q, want %q", got, named)
	}
	program := streamOf(Config{Servers: []config.Server{{ID: "a"}}}, config.Set{})
	for _, other := range []string{Stream(config.Set{}, []string{"b.json", "a.json"}, "/work"), Stream(config.Set{}, []string{"a.json", "b.json"}, "/"), program, "deck"} {
		if other == named {
			t.Errorf("other files have the same stream %q", other)
		}
	}
}

func TestRowsOfAProgramAreChecked(t *testing.T) {
	good, err := ownRow(config.Server{ID: "fs", Command: "fs-server", Env: []config.Pair{{Name: "TOKEN", Value: "secret"}}}, nil)
	if err != nil || good.Type != "stdio" || good.Phase != drawbridge.Idle || len(good.Hash) != 64 {
		t.Fatalf("row %+v, %v", good, err)
	}
	rotated := good
	rotated.Hash, rotated.Env = "", []config.Pair{{Name: "TOKEN", Value: "another"}}
	if rotated, _ = ownRow(rotated, nil); rotated.Hash != good.Hash {
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
		if _, err := ownRow(tt.row, []config.Server{good}); err == nil || err.Error() != tt.want {
			t.Errorf("error is %v, want %q", err, tt.want)
		}
	}
}
