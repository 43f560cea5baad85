//go:build unix

package guards

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/google/go-cmp/cmp"
)

// A house is a home and a project on the disk, with links that lead to what is ours.
func house(t *testing.T) (home, project string, k *OwnFileGuard) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, project = filepath.Join(base, "me"), filepath.Join(base, "project")
	ours := filepath.Join(home, ".config", "drawbridge")
	for _, dir := range []string{filepath.Join(ours, "sub"), filepath.Join(home, ".config", "drawbridge2"),
		filepath.Join(project, "sub")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"dir": ours, "sub/up": filepath.Join(ours, "sub"), "new": filepath.Join(ours, "not-there-yet"),
		"chain": "dir", "loop": "loop",
		"near": "../me/.config/drawbridge", "word": filepath.Join(ours, "mcp.json"),
	} {
		if err := os.Symlink(to, filepath.Join(project, filepath.FromSlash(name))); err != nil {
			t.Skip(err)
		}
	}
	k = &OwnFileGuard{}
	k.Update(OwnFiles{
		Home: home, Paths: []string{ours, filepath.Join(project, ".mcp.json"), filepath.Join(project, "dir", "token")},
		Prefixes:   []string{filepath.Join(base, "state", "x.db")},
		WorkingDir: func(id drawbridge.ServerID) string { return map[drawbridge.ServerID]string{"fs": project}[id] },
	})
	return home, project, k
}

func arguments(t *testing.T, name string, value any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(map[string]any{"name": "write", "arguments": map[string]any{name: value}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestTR4NoToolReachesOurFiles has the rows of the path matrix that arguments can have, with those that only look like
// it.
func TestTR4NoToolReachesOurFiles(t *testing.T) {
	home, project, k := house(t)
	ours := home + "/.config/drawbridge"
	for _, tt := range []struct {
		row, name string
		value     any
		leads     bool
	}{
		{"PT-1 as it is", "path", ours + "/mcp.json", true},
		{"PT-1 the directory itself", "path", ours, true},
		{"PT-1 with dots", "path", project + "/../me/./.config//drawbridge/x/../mcp.json", true},
		{"PT-1 relative", "path", "../me/.config/drawbridge/mcp.json", true},
		{"PT-1 from home", "path", "~/.config/drawbridge/drawbridge.toml", true},
		{"PT-1 blanks around it", "path", " " + ours + " ", true},
		{"PT-1 a URI", "uri", "file://" + ours + "/mcp.json", true},
		{"PT-1 a URI with escapes", "uri", "FILE://localhost" + home + "/%2econfig/drawbridge/mcp.json", true},
		{"PT-1 a URI as readers of URLs take it", "uri", "file:///" + strings.Replace(ours[1:], "draw", "dra\nw", 1) +
			"/mcp.json", true},
		{"PT-1 a URI with a host of the other slash", "uri", `file:\\localhost` + ours + "/mcp.json", true},
		{"PT-1 a URI without a slash", "uri", "file:" + ours[1:] + "/mcp.json", true},
		{"PT-1 a line end behind it", "path", ours + "/mcp.json\n", true},
		{"PT-1 the project's file", "file", ".mcp.json", true},
		{"PT-1 by a name that is unknown", "whatever", ours + "/mcp.json", true},
		{"PT-1 deep within", "edits", []any{map[string]any{"to": []any{ours + "/x"}}}, true},
		{"PT-1 in a text that is a list", "paths", `[NaN, "` + ours + `/x"]`, true},
		{"PT-1 in a text that is an object", "options", `{"to":{"dir":"` + ours + `"}}`, true},
		{"PT-1 in a text that is to be one", "content", `{"to":{"dir":"` + ours + `"}}`, true},
		{"PT-1 in a text that is to be one, relative", "content", `{"to":{"dir":"../me/.config/drawbridge"}}`, false},
		{"PT-1 a name of many", "files", map[string]any{ours + "/x": "text"}, true},
		{"PT-1 the store's journal", "path", filepath.Dir(project) + "/state/x.db-wal", true},
		{"PT-2 a sibling", "path", home + "/.config/drawbridge2/mcp.json", false},
		{"PT-2 a longer name", "path", project + "/.mcp.json.md", false},
		{"PT-3 a link to a directory", "path", project + "/dir/mcp.json", true},
		{"PT-3 a relative link", "path", "near/mcp.json", true},
		{"PT-3 a chain of links", "path", "chain/mcp.json", true},
		{"PT-3 a link to what is not there yet", "path", "new", true},
		{"PT-3 a link in a word of a path's name", "file", "word", true},
		{"PT-3 a link and back", "path", "sub/up/../mcp.json", true},
		{"PT-3 a path of ours that has a link in it", "path", ours + "/token", true},
		{"PT-4 by way of the process", "path", "/proc/self/root" + ours + "/mcp.json", true},
		{"PT-5 in a command", "command", "cp x " + ours + "/mcp.json", true},
		{"PT-5 in a command, from home", "cmd", "echo>~/.config/drawbridge/x", true},
		{"PT-5 in a command, by a variable", "command", "rm \"${HOME}/.config/drawbridge/mcp.json\"", true},
		{"PT-5 in a list of words", "command", []any{"cp", "x", ours + "/mcp.json"}, true},
		{"another file", "path", project + "/src/main.go", false},
		{"PT-5 in a sentence", "text", "see ~/.config/drawbridge for more, and/or ask", true},
		{"a sentence", "text", "see ~/.config/drawbridge2 for more, and/or ask", false},
		{"a text of several lines", "text", "../me/.config/drawbridge\n", false},
		{"a word that is a link's name", "text", "word", false},
		{"a number", "path", 7, false},
	} {
		for id, leads := range map[drawbridge.ServerID]bool{"fs": tt.leads, "": tt.leads &&
			!strings.Contains(tt.row, "relative")} {
			if id == "" && tt.leads {
				continue // a server that is behind a URL has no directory: see below
			}
			got := k.Decide(t.Context(), deck.Question{
				Caller: drawbridge.Caller{Kind: drawbridge.External}, Method: "tools/call",
				Params: arguments(t, tt.name, tt.value),
				Spec: drawbridge.Spec{Server: id,
					Definition: json.RawMessage(`{"inputSchema":{"properties":{"content":{"type":"string"}}}}`)},
			})
			want := drawbridge.Verdict{Effect: drawbridge.Allow}
			if leads {
				want = drawbridge.Verdict{
					Rule:   "own-files",
					Reason: "an argument leads to a file of Drawbridge's own, which no tool may touch",
					Next:   "a person can, with the drawbridge command or an editor",
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tt.row, tt.value, diff)
			}
		}
	}
}

// TestTR4NoTextReachesOurFiles has our files within texts, under the names that tools have for texts.
func TestTR4NoTextReachesOurFiles(t *testing.T) {
	home, project, k := house(t)
	leads := func(name, text string) bool {
		return k.Decide(t.Context(), deck.Question{
			Caller: drawbridge.Caller{Kind: drawbridge.External}, Kind: "tool", Params: arguments(t, name, text),
			Spec: drawbridge.Spec{Server: "fs"},
		}).Effect == drawbridge.Deny
	}
	names := []string{"command", "cmd", "args", "argv", "script", "code", "shell", "sql", "query", "url",
		"connection_string", "database", "content", "input", "text", "prompt"}
	for _, path := range []string{home + "/.config/drawbridge/mcp.json", "~/.config/drawbridge/x",
		"$HOME/.config/drawbridge", project + "/dir/mcp.json"} {
		for _, form := range []string{
			"cat %s", "cp %s /tmp/x", "--config=%s", "open('%s')", "ATTACH '%s' AS x", "a\n%s\nb", "x:%s",
			"cat <%s>/tmp/x", "Data Source=%s;Mode=ro", "`%s`", "see %s.", "%s:12", "(%s)",
			"/a/../%s", "{\"p\":\"%s\"}",
		} {
			for _, name := range names {
				if form == "/a/../%s" && path[0] != '/' {
					continue
				}
				if text := strings.Replace(form, "%s", path, 1); !leads(name, text) {
					t.Errorf("%s %q is let in", name, text)
				}
			}
		}
	}
	for _, form := range []string{"sqlite://%s", "x://%s", "git+file://%s", "see file://localhost%s",
		"jdbc:sqlite:%s"} {
		for _, name := range names {
			if text := strings.Replace(form, "%s", home+"/.config/drawbridge/x", 1); !leads(name, text) {
				t.Errorf("%s %q is let in", name, text)
			}
		}
	}
	for _, text := range []string{"https://host" + home + "/.config/drawbridge/x", "cat " + home + "/.config/other",
		"</drawbridge>", "a/b", strings.Repeat("/tmp/x ", 5000)} {
		if leads("text", text) {
			t.Errorf("%.80q is refused", text)
		}
	}
}

// TestTR4WhoAndWhere: the person may, our own cards may, no one else; a server behind a URL starts no relative path
// here; and what cannot be followed, or known, is refused.
func TestTR4WhoAndWhere(t *testing.T) {
	home, project, k := house(t)
	absolute, relative := arguments(t, "path", home+"/.config/drawbridge/x"), arguments(t, "path", ".mcp.json")
	question := func(kind drawbridge.CallerKind, id drawbridge.ServerID, params json.RawMessage) deck.Question {
		return deck.Question{Caller: drawbridge.Caller{Kind: kind}, Kind: "tool",
			Spec: drawbridge.Spec{Server: id}, Params: params}
	}
	ofNone := func(q deck.Question) deck.Question {
		q.Kind = ""
		return q
	}
	unknown := ofNone(question(drawbridge.External, "", absolute))
	deep := json.RawMessage(`{"arguments":` + strings.Repeat(`[`, 70) + strings.Repeat(`]`, 70) + `}`)
	for name, tt := range map[string]struct {
		keep *OwnFileGuard
		q    deck.Question
		want string // why not; empty is a yes
	}{
		"the person":             {k, question(drawbridge.Author, "fs", absolute), ""},
		"an agent":               {k, question(drawbridge.Agent, "fs", absolute), "an argument leads"},
		"a client":               {k, question(drawbridge.External, "fs", absolute), "an argument leads"},
		"a sandbox":              {k, question(drawbridge.Sandbox, "fs", absolute), "an argument leads"},
		"a card of ours":         {k, question(drawbridge.External, "", absolute), "an argument leads"},
		"of an extension":        {k, unknown, "an argument leads"},
		"behind a URL, absolute": {k, question(drawbridge.External, "web", absolute), "an argument leads"},
		"behind a URL, relative": {k, question(drawbridge.External, "web", relative), ""},
		"links without end": {k, question(drawbridge.External, "fs", arguments(t, "path", project+
			"/loop/x")), "resolve a path in the arguments: too many links"},
		"deeper than the limit": {k, question(drawbridge.External, "fs", deep),
			"resolve a path in the arguments: the arguments nest too deeply"},
		"a tool that is called so": {k, question(drawbridge.External, "fs", json.RawMessage(`{"name":"`+home+
			`/.config/drawbridge/x"}`)), ""},
		"a name of an extension's": {k, ofNone(question(drawbridge.External, "fs", json.RawMessage(`{"name":"`+
			home+`/.config/drawbridge/x"}`))), "an argument leads"},
		"a name in another case": {k, question(drawbridge.External, "fs", json.RawMessage(`{"Name":"`+home+
			`/.config/drawbridge/x"}`)), "an argument leads"},
		"what is in _meta": {k, question(drawbridge.External, "fs", json.RawMessage(`{"_meta":{"x":"`+
			home+`/.config/drawbridge/x"}}`)), ""},
		"no list of files": {&OwnFileGuard{}, question(drawbridge.External, "fs", relative),
			"the list of Drawbridge's own files is missing"},
		"no list of files, and the person": {&OwnFileGuard{}, question(drawbridge.Author, "fs", relative),
			"the list of Drawbridge's own files is missing"},
		"a name that is there twice": {k, question(drawbridge.External, "fs",
			json.RawMessage(`{"arguments":{"path":"/x","path":".mcp.json"}}`)), "an argument leads"},
		"arguments that are there twice": {k, question(drawbridge.External, "fs",
			json.RawMessage(`{"arguments":{},"Arguments":{"path":".mcp.json"}}`)), "an argument leads"},
	} {
		got := tt.keep.Decide(context.Background(), tt.q)
		if (got.Effect == drawbridge.Allow) != (tt.want == "") || !strings.Contains(got.Reason, tt.want) ||
			tt.want != "" && got.Rule != ownFilesRule {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// FuzzFollow shows that a path ends where the system says it does.
func FuzzFollow(f *testing.F) {
	for _, s := range []string{"a/b", "../x", "dir/../../y", "/etc/./hosts", "loop", "new", "chain/..", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsRune(s, 0) || len(s) > 200 {
			return
		}
		base := t.TempDir()
		if err := errors.Join(os.Mkdir(base+"/d", 0o700), os.Symlink("d", base+"/dir"), os.Symlink("loop", base+
			"/loop")); err != nil {
			t.Fatal(err)
		}
		path := base + "/" + s
		want, err := filepath.EvalSymlinks(path)
		if err != nil {
			return
		}
		if _, err := os.Stat(path); err != nil {
			return // the system does not get there: "file/.."
		}
		if got, err := resolveLinks(path); err != nil || got != want {
			t.Errorf("%q leads to %q, %v; want %q", path, got, err, want)
		}
	})
}

// TestTR4RelativePathsFromOtherDirectories has a server that starts elsewhere, and was given the project and the
// person's home.
func TestTR4RelativePathsFromOtherDirectories(t *testing.T) {
	home, project, k := house(t)
	ours := home + "/.config/drawbridge"
	program := ours + "/server.py"
	if err := os.WriteFile(program, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := *k.files.Load()
	o.WorkingDir = func(drawbridge.ServerID) string { return "/" }
	o.RelativeDirs = func(drawbridge.ServerID) []string { return []string{"/", program, "data", project, "~/.config"} }
	k.Update(o)
	for _, tt := range []struct {
		name  string
		value any
		leads bool
	}{
		{"path", ".mcp.json", true},
		{"path", "dir/x", true},
		{"path", "drawbridge/mcp.json", true},
		{"text", "./drawbridge/mcp.json", true},
		{"path", "file:///../drawbridge/mcp.json", true},
		{"path", "~/../drawbridge/mcp.json", true},
		{"path", "src/main.go", false},
		{"path", "x", false},
		{"text", "drawbridge", false}, // a word
	} {
		got := k.Decide(t.Context(), deck.Question{
			Caller: drawbridge.Caller{Kind: drawbridge.External}, Kind: "tool", Params: arguments(t, tt.name, tt.value),
			Spec: drawbridge.Spec{Server: "fs"},
		})
		if leads := got.Effect == drawbridge.Deny; leads != tt.leads {
			t.Errorf("%s %v: %+v", tt.name, tt.value, got)
		}
	}
}
