package config

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/launch"
)

func lookupIn(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// loadBytes reads one file's rows and settings as if it had been found at a user-level path.
func loadBytes(data []byte, p string, s *clientconfig.Dialect) (Configuration, error) {
	l, err := newLoader(Options{
		Dir: filepath.FromSlash("/dir"), Home: filepath.FromSlash("/home"),
		LookupEnv: lookupIn(map[string]string{"A": "1", "NUL": "a\x00b", "EMPTY": ""}),
	})
	if err != nil {
		return Configuration{}, err
	}
	src := sourceFile{path: "file", kind: OriginUser, provider: p, dialect: s, dir: l.Project, readRows: true,
		readSettings: s.Settings}
	if src.root, err = s.Parse(data); err != nil {
		return Configuration{}, err
	}
	if err := l.loadSource(src); err != nil {
		return Configuration{}, err
	}
	return l.set, nil
}

// checkMountable holds every mountable row to what the bridge relies on.
func checkMountable(t *testing.T, set Configuration, lines int) {
	t.Helper()
	names := map[drawbridge.ServerID]bool{}
	for _, s := range set.Servers {
		if s.Phase == "" || (s.Phase == drawbridge.Idle) != (s.Reason == "") || len(s.Hash) != 64 {
			t.Errorf("phase %q, reason %q, hash %q", s.Phase, s.Reason, s.Hash)
		}
		if s.Origin.Line < 1 || s.Origin.Line > lines {
			t.Errorf("line %d of %d", s.Origin.Line, lines)
		}
	}
	for _, s := range set.Mountable() {
		if s.ID.Validate() != nil || names[s.ID] || !s.Enabled {
			t.Errorf("name %q: %v, seen before: %v, enabled: %v", s.ID, s.ID.Validate(), names[s.ID], s.Enabled)
		}
		names[s.ID] = true
		if s.Type == "stdio" {
			if s.Command == "" || s.URL != "" || strings.Contains(s.Command+s.Cwd+strings.Join(s.Args, ""), "\x00") ||
				launch.StartsDrawbridge(s.Command, s.Args) {
				t.Errorf("a process of %q %q", s.Command, s.Args)
			}
			continue
		}
		if u, err := url.Parse(s.URL); err != nil || u.Host == "" || s.Command != "" || s.Type != "" &&
			s.Type != "http" && s.Type != "sse" {
			t.Errorf("type %q, url %q: %v", s.Type, s.URL, err)
		}
	}
}

// FuzzFile is row FZ-14: whatever a file says, what is read of it may be mounted or says why not.
func FuzzFile(f *testing.F) {
	for _, s := range []string{
		"", "{}", "null", `{"servers": ` + "[" + allMembers + `]}`, `{"mcpServers": {"a": ` + allMembers + `}}`,
		`{"servers": [{"name": "a", "command": "${NUL}", "args": ["${A}", 1, null]}, {"name": "a", "url": "https://h"}, 5, null, {}]}`,
		"\ufeff// c\n{\"servers\": {/* d */ \"a\": {\"command\": \"x\",},}, \"servers\": 5} // e",
		`{"servers": {"a": {"type": "http", "url": "http://${EMPTY}"}, "\ud800": {"command": ""}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if set, err := loadBytes(data, "native", clientconfig.NativeDialect("a.json")); err == nil {
			checkMountable(t, set, 1+strings.Count(string(data), "\n"))
		}
	})
}

func FuzzTOML(f *testing.F) {
	for _, s := range []string{
		"", "[mcp]\nnaming = 'bare'\n", "[[mcp.servers]]\nid = 'a'\ncommand = 'x'\n[mcp.servers.env]\nA = '1'\n",
		"mcp.servers = [{id='a', url='https://h', headers={A=1}}, {id='b'}]\n[serve]\nhttp=':1'\n",
		"a = \"\"\"\n[[x]]\\\"\"\"\"\"\nb = '''''''\n\"q\\\"\".'r' = [1, [2, {c = {}}],]\n",
		"[mcp.servers.a]\ncommand='x'\nx=inf\ny=2000-01-01\n",
		"[[a]]\n[[a.b]]\n[a.b.c]\n[[a]]\n", "mcp = { servers = { a = { command = 'x' } } }",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if set, err := loadBytes(data, "native", clientconfig.NativeDialect("a.toml")); err == nil {
			checkMountable(t, set, 1+strings.Count(string(data), "\n"))
		}
	})
}
