package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// found shows rows as "name provider status".
func foundShort(rows []ImportCandidate) (out []string) {
	for _, f := range rows {
		out = append(out, string(f.Name)+" "+f.Provider+" "+string(f.Status))
	}
	return out
}

func TestScanStatuses(t *testing.T) {
	const (
		claude = "home/.claude.json"
		cursor = "home/.cursor/mcp.json"
		codex  = "home/.codex/config.toml"
	)
	for name, tt := range map[string]struct {
		files map[string]string
		from  []string
		want  []string
	}{
		"nothing anywhere": {nil, nil, nil},
		"the order is that of priorities": {
			map[string]string{
				cursor: `{"mcpServers": {"a": {"command": "a"}}}`, claude: `{"mcpServers": {"b": {"command": "b"}}}`,
				codex: "[mcp_servers.c]\ncommand = 'c'\n",
			}, nil,
			[]string{"b claude-code new", "c codex new", "a cursor new"},
		},
		"some providers only": {
			map[string]string{cursor: `{"mcpServers": {"a": {"command": "a"}}}`,
				claude: `{"mcpServers": {"a": {"command": "b"}}}`},
			[]string{"cursor"},
			[]string{"a cursor new"},
		},
		"the person's own rows, whichever file has them": {
			map[string]string{
				userJSON: `{"servers": [{"name": "same", "command": "x", "enabled": false, "timeout": 5}, {"name": "other", "command": "x"}]}`,
				userTOML: "[[mcp.servers]]\nid = 'toml'\nurl = 'https://h'\ntype = 'http'\n",
				cursor: `{"mcpServers": {"same": {"type": "stdio", "command": "x", "args": []}, "other": {"command": "y"},
					"toml": {"url": "https://h"}, "new": {"command": "x"}}}`,
			}, nil,
			[]string{"same cursor same", "other cursor conflict", "toml cursor same", "new cursor new"},
		},
		"earlier definitions of the scan": {
			map[string]string{
				claude: `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}`,
				cursor: `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}`,
			}, nil,
			[]string{"a claude-code new", "b claude-code new", "a cursor same", "b cursor shadowed"},
		},
		"one that is refused takes nobody's place": {
			map[string]string{
				claude: `{"mcpServers": {"a": {"command": "x", "url": "https://h"}, "drawbridge": {"command": "drawbridge", "args": ["serve"]}}}`,
				cursor: `{"mcpServers": {"a": {"command": "y"}, "me": {"command": "drawbridge", "args": ["serve"], "disabled": true}, "no": {"disabled": true}, "a b": {"command": "x"}, "t": "x"}}`,
			}, nil,
			[]string{"a claude-code refused", "drawbridge claude-code refused", "a cursor new", "me cursor refused",
				"no cursor refused", "a b cursor refused", "t cursor refused"},
		},
		"project files are none of the person's": {
			map[string]string{"project/.cursor/mcp.json": `{"mcpServers": {"a": {"command": "x"}}}`,
				"project/.mcp.json": `{"mcpServers": {"b": {"command": "x"}}}`}, nil, nil,
		},
		"what is off by name is taken over all the same": {
			map[string]string{userJSON: `{"mcpServers": {}, "disabledServers": ["a"]}`,
				cursor: `{"mcpServers": {"a": {"command": "x"}}}`}, nil,
			[]string{"a cursor new"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantDiff(t, "found", tt.want, foundShort(newWorld(t, tt.files).mustScan(t, tt.from...).Candidates))
		})
	}
}

// TestScanKnowsWhatIsKept: a row that refers to a value which the person keeps is the one that has it in plain text.
func TestScanKnowsWhatIsKept(t *testing.T) {
	w := newWorld(t, map[string]string{
		userJSON: `{"mcpServers": {
			"same": {"url": "https://h", "headers": {"Authorization": "Bearer ${keychain:same.Authorization}", "X": "${keychain:a}${keychain:b}"}},
			"rotated": {"url": "https://h", "headers": {"Authorization": "Bearer ${keychain:rotated.Authorization}"}},
			"gone": {"url": "https://h", "headers": {"Authorization": "Bearer ${keychain:gone}"}}}}`,
		"home/.cursor/mcp.json": `{"mcpServers": {
			"same": {"url": "https://h", "headers": {"Authorization": "Bearer one", "X": "12"}},
			"rotated": {"url": "https://h", "headers": {"Authorization": "Bearer new"}},
			"gone": {"url": "https://h", "headers": {"Authorization": "Bearer one"}}}}`,
	})
	kept := map[string]string{"same.Authorization": "one", "rotated.Authorization": "old", "a": "1", "b": "2"}
	o := w.options()
	for _, tt := range []struct {
		kept func(name string) (string, bool)
		want string
	}{
		{func(name string) (string, bool) { v, ok := kept[name]; return v, ok }, "same"},
		{nil, "conflict"},
	} {
		o.KeychainValue = tt.kept
		found, err := ScanImports(o, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantDiff(t, "found", []string{"same cursor " + tt.want, "rotated cursor conflict", "gone cursor conflict"},
			foundShort(found.Candidates))
	}
}

func TestScanInTheHomeTakesItsProjectFiles(t *testing.T) {
	w := newWorld(t, map[string]string{
		"home/.mcp.json":        `{"mcpServers": {"a": {"command": "x"}}}`,
		"home/.cursor/mcp.json": `{"mcpServers": {"b": {"command": "x"}}}`,
	})
	o := w.options()
	o.Dir = o.Home
	found, err := ScanImports(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantDiff(t, "found", []string{"b cursor new", "a mcp-json new"}, foundShort(found.Candidates))
	set, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	wantDiff(t, "loaded", []string(nil), short(set.Servers))
}

func TestScanNeverPutsSecretsIntoWords(t *testing.T) {
	w := newWorld(t, map[string]string{"home/.cursor/mcp.json": `{"mcpServers": {
		"a": {"command": "x", "env": {"T": "${env:TOKEN}", "U": ["hunter2"], "V": "${hunter:hunter2}"[0]}}}}`})
	w.env["TOKEN"] = "hunter2"
	found := w.mustScan(t)
	if len(found.Candidates) != 0 || len(found.Warnings) != 1 || strings.Contains(found.Warnings[0].Text, "hunter2") {
		t.Errorf("%v %v", found.Candidates, found.Warnings)
	}
	w.write(t, "home/.cursor/mcp.json",
		`{"mcpServers": {"a": {"command": "x", "env": {"T": "${env:TOKEN}", "U": ["hunter2"]}, "hunter": "hunter2"}}}`)
	row := w.mustScan(t).Candidates[0]
	wantDiff(t, "row", json.RawMessage(`{"command":"x","env":{"T":"${TOKEN}"},"imported_from":"cursor"}`), row.Raw)
	wantDiff(t, "notes", []string{`"U" in "env" is not a string and was left out`,
		`unknown member "hunter" was left out`},
		row.Notes)
}

func TestScanFaults(t *testing.T) {
	w := newWorld(t, map[string]string{userJSON: `{"mcpServers": nope}`})
	for name, tt := range map[string]struct {
		from []string
		want string
	}{
		"an unknown program": {[]string{"cursr"},
			`import from cursr: unknown program; did you mean "cursor"? (name one of indus,`},
		"our own":           {[]string{"native"}, `import from native: unknown program (name one of indus,`},
		"a broken own file": {nil, "read " + w.path(userJSON) + ":1:16: this is neither"},
	} {
		_, err := ScanImports(w.options(), tt.from)
		fault, ok := errors.AsType[*drawbridge.Fault](err)
		if !ok || fault.Code != drawbridge.InvalidInput || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w = newWorld(t, map[string]string{"home/.cursor/mcp.json": "{", "home/.codex/config.toml": "x",
		"home/.claude.json": `{"mcpServers": {"a": {"command": "x"}}}`})
	found := w.mustScan(t)
	wantDiff(t, "found", []string{"a claude-code new"}, foundShort(found.Candidates))
	if len(found.Warnings) != 2 {
		t.Errorf("warnings %v", found.Warnings)
	}
}

func TestScanReadsALargeFileOfAnotherProgram(t *testing.T) {
	w := newWorld(t, map[string]string{
		"home/.claude.json": `{"history": "` + strings.Repeat("x", MaxFile) +
			`", "mcpServers": {"a": {"command": "x"}}}`,
	})
	wantDiff(t, "found", []string{"a claude-code new"}, foundShort(w.mustScan(t).Candidates))
}

func TestWhereServersAreWritten(t *testing.T) {
	w := newWorld(t, nil)
	user, err := UserFile(w.options())
	if want := w.path(userJSON); err != nil || user != want {
		t.Errorf("%s, %v, want %s", user, err, want)
	}
	project, err := ProjectFile(w.options())
	if want := w.path(projectJSON); err != nil || project != want {
		t.Errorf("%s, %v, want %s", project, err, want)
	}
	if _, err := UserFile(Options{LookupEnv: lookupIn(nil)}); err == nil {
		t.Error("a file without a home")
	}
	files, err := SourceFiles(w.options())
	if err != nil || files[0] != w.path(projectJSON) || files[2] != w.path(userJSON) || len(files) < 20 {
		t.Errorf("files %v, %v", files, err)
	}
	for _, f := range files {
		aboutPlugins := f == w.path("home/.claude/settings.json") ||
			f == w.path("home/.claude/plugins/installed_plugins.json")
		if strings.HasPrefix(f, w.path("home")) && !strings.Contains(f, "drawbridge") && !aboutPlugins {
			t.Errorf("%s is another program's", f)
		}
	}
}

// TestProviders walks the table.
func TestProviders(t *testing.T) {
	var names []string
	for _, p := range Providers() {
		names = append(names, p.Name)
		if p.Title == "" || len(p.ProjectFiles)+len(p.UserFiles) == 0 {
			t.Errorf("%+v", p)
		}
	}
	wantDiff(t, "providers", strings.Fields(`native indus pisces claude-code claude-plugins codex gemini opencode cursor
		windsurf claude-desktop cline zed crush goose vscode mcp-json`), names)
	if _, err := os.Stat(filepath.Join("testdata", "native")); err != nil {
		t.Error(err)
	}
}
