package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

// A world is a directory with a home and a project in it, and an environment.
type world struct {
	root string
	env  map[string]string
}

// newWorld writes files, named by their paths from the root.
func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	w := &world{root: t.TempDir(), env: map[string]string{}}
	for _, dir := range []string{"home", "project"} {
		if err := os.MkdirAll(w.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		w.write(t, name, content)
	}
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.root, filepath.FromSlash(name)) }

func (w *world) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.path(name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// load loads from the project directory, with what --mcp names.
func (w *world) load(paths ...string) (Configuration, error) {
	return Load(Options{
		Paths: paths, Dir: w.path("project"), Home: w.path("home"),
		LookupEnv: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
	})
}

func (w *world) mustLoad(t *testing.T, paths ...string) Configuration {
	t.Helper()
	set, err := w.load(paths...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// short shows rows as "name kind phase", in order.
func short(rows []Server) []string {
	var out []string
	for _, s := range rows {
		out = append(out, string(s.ID)+" "+string(s.Origin.Kind)+" "+string(s.Phase))
	}
	return out
}

// warnings shows warnings as "file:line: text", the directory left out.
func (w *world) warnings(set Configuration) []string {
	var out []string
	for _, warning := range set.Warnings {
		out = append(out, filepath.ToSlash(strings.TrimPrefix(warning.String(), w.root+string(filepath.Separator))))
	}
	return out
}

func wantDiff(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const (
	projectJSON = "project/.drawbridge/mcp.json"
	projectTOML = "project/.drawbridge/drawbridge.toml"
	userJSON    = "home/.config/drawbridge/mcp.json"
	userTOML    = "home/.config/drawbridge/drawbridge.toml"
	legacyJSON  = "home/.drawbridge/agent/mcp.json"
	legacyAlt   = "home/.drawbridge/agent/mcp-servers.json"
)

func TestLoadSearchesTheNativeFamilyInOrder(t *testing.T) {
	w := newWorld(t, map[string]string{
		projectJSON: `{"servers": [{"name": "a", "command": "x"}]}`,
		projectTOML: "[[mcp.servers]]\nid = \"b\"\ncommand = \"x\"\n",
		userJSON:    `{"mcpServers": {"c": {"command": "x"}, "d": {"url": "https://example.com/mcp"}}}`,
		userTOML:    "[[mcp.servers]]\nid = \"e\"\ncommand = \"x\"\n",
		legacyJSON:  `{"mcpServers": [{"name": "f", "command": "x"}]}`,
		legacyAlt:   `{"servers": {"g": {"command": "x"}}}`,
	})
	set := w.mustLoad(t)
	wantDiff(t, "servers", []string{
		"a project needs-approval", "b project needs-approval",
		"c user idle", "d user idle", "e user idle", "f user idle", "g user idle",
	}, short(set.Servers))
	wantDiff(t, "mountable", []string{"c user idle", "d user idle", "e user idle", "f user idle", "g user idle"},
		short(set.Mountable()))
	wantDiff(t, "warnings", []string(nil), w.warnings(set))
	var want []string
	for _, name := range []string{projectJSON, projectTOML, userJSON, userTOML, legacyJSON, legacyAlt} {
		want = append(want, w.path(name))
	}
	wantDiff(t, "sources", want, set.Sources)
	if got, want := set.Servers[3].Origin.String(), w.path(userJSON)+":1"; got != want {
		t.Errorf("origin %s, want %s", got, want)
	}
}

func TestLoadWithNothingConfigured(t *testing.T) {
	set := newWorld(t, nil).mustLoad(t)
	wantDiff(t, "set", Configuration{}, set)
}

func TestLoadFindsTheConfigurationDirectory(t *testing.T) {
	file := `{"servers": {"s": {"command": "x"}}}`
	w := newWorld(t, map[string]string{"xdg/drawbridge/mcp.json": file,
		userJSON: `{"servers": {"home": {"command": "x"}}}`})
	w.env["XDG_CONFIG_HOME"] = w.path("xdg")
	wantDiff(t, "XDG_CONFIG_HOME", []string{"s user idle"}, short(w.mustLoad(t).Servers))

	w.env["XDG_CONFIG_HOME"] = "relative"
	wantDiff(t, "relative XDG_CONFIG_HOME", []string{"home user idle"}, short(w.mustLoad(t).Servers))
}

// TestAVariableIsSetOrItIsNot has a lookup that says something of variables that are not set.
func TestAVariableIsSetOrItIsNot(t *testing.T) {
	w := newWorld(t,
		map[string]string{"project/a.json": `{"servers": {"s": {"command": "x", "env": {"A": "NAME", "B": "${NAME:-d}"}}}}`})
	set, err := Load(Options{Paths: []string{"a.json"}, Dir: w.path("project"), LookupEnv: func(string) (string,
		bool) {
		return w.root, false
	}})
	if err != nil {
		t.Fatal(err)
	}
	wantDiff(t, "env", []NameValue{{"A", "NAME"}, {"B", "d"}}, set.Servers[0].Env)
}

func TestLoadShadows(t *testing.T) {
	for name, tt := range map[string]struct {
		files             map[string]string
		servers, shadowed []string
	}{
		"the first valid definition wins": {
			map[string]string{
				userJSON:   `{"servers": {"s": {"command": "first"}}}`,
				legacyJSON: `{"servers": {"s": {"command": "second"}, "t": {"command": "x"}}}`,
			},
			[]string{"s user idle", "t user idle"}, []string{"s user idle"},
		},
		"an invalid one shadows nothing, and both are seen": {
			map[string]string{
				userJSON:   `{"servers": {"s": {"command": "x", "url": "https://example.com"}}}`,
				legacyJSON: `{"servers": {"s": {"command": "x"}}}`,
			},
			[]string{"s user refused", "s user idle"}, nil,
		},
		"an invalid one after a valid one is seen too": {
			map[string]string{
				userJSON:   `{"servers": {"s": {"command": "x"}}}`,
				legacyJSON: `{"servers": {"s": {}}}`,
			},
			[]string{"s user idle", "s user refused"}, nil,
		},
		"a row that is off stands for its name": {
			map[string]string{
				userJSON:   `{"servers": {"s": {"command": "x", "enabled": false}}}`,
				legacyJSON: `{"servers": {"s": {"command": "x"}}}`,
			},
			[]string{"s user disabled"}, []string{"s user idle"},
		},
		"a project takes no server of the person's away": {
			map[string]string{
				projectJSON: `{"servers": {"s": {"command": "x"}, "t": {"command": "x", "enabled": false}}}`,
				projectTOML: "[mcp.servers.s]\ncommand = \"x\"\n",
				userJSON:    `{"servers": {"s": {"command": "x"}, "t": {"command": "x"}}}`,
			},
			[]string{"s project needs-approval", "t project disabled", "s user idle", "t user idle"},
			[]string{"s project needs-approval"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := newWorld(t, tt.files).mustLoad(t)
			wantDiff(t, "servers", tt.servers, short(set.Servers))
			wantDiff(t, "shadowed", tt.shadowed, short(set.Shadowed))
		})
	}
}

func TestLookupGivesTheRowThatCounts(t *testing.T) {
	set := newWorld(t, map[string]string{
		projectJSON: `{"servers": {"s": {"command": "project"}, "only": {"command": "project"}}}`,
		userJSON:    `{"servers": {"s": {"command": "mine"}}}`,
	}).mustLoad(t)
	for name, want := range map[drawbridge.ServerID]string{"s": "mine", "only": "project", "none": ""} {
		if row, ok := set.Lookup(name); row.Command != want || ok != (want != "") {
			t.Errorf("Lookup(%q) = %q, %v, want %q", name, row.Command, ok, want)
		}
	}
}

func TestLoadInTheHomeDirectoryIsUserLevel(t *testing.T) {
	w := newWorld(t, map[string]string{
		"home/.drawbridge/mcp.json":        `{"servers": {"s": {"command": "x"}}}`,
		"home/.drawbridge/drawbridge.toml": "[mcp]\nnaming = \"bare\"\n",
	})
	if err := os.Symlink(w.path("home"), w.path("link")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	for _, dir := range []string{"home", "link"} {
		set, err := Load(Options{Dir: w.path(dir), Home: w.path("home"), LookupEnv: func(string) (string,
			bool) {
			return "", false
		}})
		if err != nil {
			t.Fatal(err)
		}
		wantDiff(t, "servers from "+dir, []string{"s user idle"}, short(set.Servers))
		if set.Settings.Naming != "" {
			t.Errorf("settings came from %s", dir)
		}
	}
}

func TestLoadReadsALinkedFileOnce(t *testing.T) {
	w := newWorld(t, map[string]string{userJSON: `{"servers": {"s": {"command": "x"}}}`})
	if err := os.Symlink(w.path("home/.config/drawbridge"), w.path("project/.drawbridge")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	set := w.mustLoad(t)
	wantDiff(t, "servers", []string{"s user idle"}, short(set.Servers))
	wantDiff(t, "shadowed", []string(nil), short(set.Shadowed))
}

func TestExplicitPaths(t *testing.T) {
	w := newWorld(t, map[string]string{
		"one.json":                   `{"servers": {"one": {"command": "x"}}}`,
		"two,with.json":              `{"servers": {"two": {"command": "x"}}}`,
		"three.toml":                 "[[mcp.servers]]\nid = \"three\"\ncommand = \"x\"\n",
		"other/.drawbridge/mcp.json": `{"servers": {"other": {"command": "x"}, "off": {"command": "x", "enabled": false}}}`,
		projectJSON:                  `{"servers": {"project": {"command": "x"}}}`,
		userJSON:                     `{"servers": {"user": {"command": "x"}}}`,
		userTOML:                     "[mcp]\nnaming = \"bare\"\n[[mcp.servers]]\nid = \"toml\"\ncommand = \"x\"\n",
	})
	for name, tt := range map[string]struct {
		paths, want []string
	}{
		"a file replaces discovery": {[]string{"../one.json"}, []string{"one explicit idle"}},
		"commas and repeats": {[]string{"../three.toml,../one.json", "../two,with.json"},
			[]string{"three explicit idle", "one explicit idle", "two explicit idle"}},
		"the same file twice": {[]string{"../one.json", w.path("one.json")}, []string{"one explicit idle"}},
		"a directory is searched": {[]string{"../other"}, []string{"other explicit idle",
			"off explicit disabled", "user user idle", "toml user idle"}},
		"two directories share a home": {[]string{"../other", "."}, []string{"other explicit idle",
			"off explicit disabled", "user user idle", "toml user idle", "project explicit idle"}},
		"the settings file, for itself": {[]string{w.path(userTOML)}, []string{"toml explicit idle"}},
		"an absolute path, spaces about": {[]string{w.path("one.json") + " , ../three.toml"},
			[]string{"one explicit idle", "three explicit idle"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := w.mustLoad(t, tt.paths...)
			wantDiff(t, "servers", tt.want, short(set.Servers))
			if set.Settings.Naming != "bare" {
				t.Error("the user's settings were not read")
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		paths []string
		want  string // the root as $ROOT
	}{
		"a path that is not there": {nil, []string{"./typo.json"},
			"read ./typo.json: no such file or directory (name a file, or a directory to search)"},
		"one of several": {map[string]string{"project/a.json": `{"servers":{}}`}, []string{"a.json,b.json"},
			"read b.json: no such file or directory (name a file, or a directory to search)"},
		"an empty path":     {nil, []string{""}, "read the configuration: the path is empty"},
		"nothing but comma": {nil, []string{","}, "read the configuration: the path is empty"},
		"broken JSON": {map[string]string{"project/a.json": "{\n  \"servers\": {\"a\": }\n}"}, []string{"a.json"},
			"read $ROOT/project/a.json:2:20: invalid character '}' at start of value"},
		"a literal that may be a secret": {map[string]string{"project/a.json": `{"servers": {"a": {"env": {"T": ghp123}}}}`}, []string{"a.json"},
			"read $ROOT/project/a.json:1:33: this is neither a string in double quotes, a number, true, false nor null"},
		"an empty file": {map[string]string{"project/a.json": " \n"}, []string{"a.json"},
			"read $ROOT/project/a.json:1: the file is empty"},
		"no object": {map[string]string{"project/a.json": "// list\n[]"}, []string{"a.json"},
			"read $ROOT/project/a.json:2: the file must hold an object"},
		"deep JSON": {map[string]string{"project/a.json": "\n" + strings.Repeat("[", MaxFile-1)}, []string{"a.json"},
			"read $ROOT/project/a.json:2: values nest deeper than 64"},
		"a large file": {map[string]string{"project/a.json": strings.Repeat(" ", MaxFile+1)}, []string{"a.json"},
			"read $ROOT/project/a.json: the file is larger than 4 MiB"},
		"broken TOML": {map[string]string{"project/a.toml": "[mcp]\nx = 'y\n"}, []string{"a.toml"},
			"read $ROOT/project/a.toml:2:7: strings cannot contain newlines"},
		"a TOML word that may be a secret": {map[string]string{"project/a.toml": "[mcp]\ntoken = ghp\n"},
			[]string{"a.toml"},
			"read $ROOT/project/a.toml:2:9: expected value but found … instead"},
		"broken settings": {map[string]string{userTOML: "mcp = "}, nil, "read $ROOT/" + userTOML +
			":1:6: unexpected EOF; expected value"},
		"bad settings": {map[string]string{userTOML: "[mcp]\n\nnaming = 'long'"}, nil, "read $ROOT/" +
			userTOML + `:3: mcp.naming must be "qualified", "mcp" or "bare"`},
		"bad settings, --mcp": {map[string]string{userTOML: "[mcp]\ngrace = true", "project/a.json": `{"servers":{}}`},
			[]string{"a.json"}, "read $ROOT/" + userTOML + `:2: mcp.grace must be a time, such as "250ms", a number of milliseconds, or 0`},
		"settings of no table": {map[string]string{userTOML: "mcp = 1"}, nil, "read $ROOT/" + userTOML +
			`:1: "mcp" must be a table`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.files)
			_, err := w.load(tt.paths...)
			fault, ok := errors.AsType[*drawbridge.Fault](err)
			if !ok {
				t.Fatalf("error %v is no fault", err)
			}
			if fault.Code != drawbridge.InvalidInput {
				t.Errorf("code %s", fault.Code)
			}
			wantDiff(t, "error", tt.want, filepath.ToSlash(strings.ReplaceAll(err.Error(), w.root, "$ROOT")))
		})
	}
}

func TestABrokenFileNobodyNamedIsAWarning(t *testing.T) {
	w := newWorld(t, map[string]string{
		projectJSON: "{\n\"servers\": nope}",
		projectTOML: "[mcp]\n= 1",
		userJSON:    strings.Repeat(" ", MaxFile+1),
		legacyJSON:  `{"servers": {"s": {"command": "x"}}}`,
	})
	if err := os.MkdirAll(w.path(legacyAlt), 0o700); err != nil {
		t.Fatal(err)
	}
	set := w.mustLoad(t)
	wantDiff(t, "servers", []string{"s user idle"}, short(set.Servers))
	wantDiff(t, "sources", []string{w.path(legacyJSON)}, set.Sources)
	wantDiff(t, "warnings", []string{
		projectJSON + ":2: this is neither a string in double quotes, a number, true, false nor null; the file was left out",
		projectTOML + ":2: unexpected '=': key name appears blank; the file was left out",
		userJSON + ": the file is larger than 4 MiB; the file was left out",
		legacyAlt + ": this is not a regular file; the file was left out",
	}, w.warnings(set))
}

func TestWarningsAboutFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		file, content string
		want          []string
	}{
		"no servers": {userJSON, `{"inputs": []}`,
			[]string{userJSON + `: there are no servers here: the file has no member "servers" or "mcpServers"`}},
		"a near miss": {userJSON, "{\n\"mcpServer\": {}}",
			[]string{userJSON + `:2: unknown member "mcpServer"; did you mean "mcpServers"?`}},
		"servers of no sort": {userJSON, `{"servers": "x"}`,
			[]string{userJSON + `:1: "servers" must be an array or an object of servers`}},
		"nobody's business": {userJSON, `{"$schema": "x", "servers": {}, "theme": "dark"}`, nil},
		"a project's settings": {projectTOML, "[mcp.servers.s]\ncommand = 'x'\n[serve]\nhttp = '0.0.0.0:1'\n",
			[]string{projectTOML +
				":3: the settings of this file are ignored: they are read from the user's own drawbridge/drawbridge.toml only"}},
		"a project's mcp table": {projectTOML, "[mcp]\nnaming = 'bare'\n", []string{projectTOML +
			":1: the settings of this file are ignored: they are read from the user's own drawbridge/drawbridge.toml only"}},
		"a project's rows only": {projectTOML, "[[mcp.servers]]\nid = 's'\ncommand = 'x'\n", nil},
		"unknown settings": {userTOML, "[mcp]\ngrade = '1s'\n[toys.policies]\nx = 1\n[stores]\n", []string{
			userTOML + `:2: unknown setting "mcp.grade"; did you mean "grace"?`,
			userTOML + `:3: unknown setting "toys"; did you mean "tools"?`,
			userTOML + `:5: unknown setting "stores"; did you mean "store"?`,
		}},
		"twice in one file": {userJSON,
			"{\"servers\": [\n{\"name\": \"s\", \"command\": \"x\"},\n{\"name\": \"s\", \"command\": \"y\"}]}",
			[]string{
				userJSON + `:3: Server "s": the file has it twice; the one on line 2 counts`,
			}},
		"both members, each twice": {userJSON,
			"{\"servers\": {\"a\": {\"command\": \"x\"}}, \"mcpServers\": {\"b\": {\"command\": \"x\"}},\n\"servers\": {\"c\": {\"command\": \"x\"}, \"c\": {\"command\": \"x\"}}}", []string{
				userJSON + `:2: Server "c": the file has it twice; the one on line 2 counts`,
			}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{tt.file: tt.content})
			wantDiff(t, "warnings", tt.want, w.warnings(w.mustLoad(t)))
		})
	}
}

func TestWithoutAHomeTheProjectIsReadAllTheSame(t *testing.T) {
	w := newWorld(t, map[string]string{projectJSON: `{"servers": {"s": {"command": "x"}}}`})
	set, err := Load(Options{Dir: w.path("project"), LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	wantDiff(t, "servers", []string{"s project needs-approval"}, short(set.Servers))

	set, err = Load(Options{Paths: []string{projectJSON}, Dir: w.root, LookupEnv: func(string) (string,
		bool) {
		return "", false
	}})
	if err != nil {
		t.Fatal(err)
	}
	wantDiff(t, "servers of the named file", []string{"s explicit idle"}, short(set.Servers))
}

func TestProjectFilesShareOneBound(t *testing.T) {
	rows := strings.Repeat(`{"name": "x", "nothing": 1},`, MaxRows-1)
	w := newWorld(t, map[string]string{
		projectJSON:                "{\"servers\": [" + rows + "]}",
		"project/.cursor/mcp.json": `{"mcpServers": {"one": {"command": "x"}, "two": {"command": "x"}}}`,
		"project/.mcp.json":        `{"mcpServers": {"` + strings.Repeat(`a": {}, "`, maxProjectValues) + `b": {}}}`,
	})
	set := w.mustLoad(t)
	if len(set.Servers) != MaxRows {
		t.Errorf("%d servers", len(set.Servers))
	}
	got := strings.Join(w.warnings(set), "\n")
	for _, want := range []string{
		".cursor/mcp.json:1: there are more than 1000 servers; those from here on were left out",
		".mcp.json: the project's configuration files have more than 60000 values together; the file was left out",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no warning %q in\n%.2000s", want, got)
		}
	}
}

func TestAFileDoesNotBuryTheOthers(t *testing.T) {
	many := strings.Repeat(`{"name": "x", "nothing": 1},`, MaxRows)
	w := newWorld(t, map[string]string{
		projectJSON: "{\"servers\": [" + many + "\n{\"name\": \"last\", \"command\": \"x\"}]}",
		userJSON:    `{"servers": {"mine": {"command": "x", "comand": "y"}}}`,
	})
	set := w.mustLoad(t)
	if got := short(set.Servers); len(got) != MaxRows+1 || got[MaxRows] != "mine user idle" {
		t.Errorf("%d servers", len(got))
	}
	got := w.warnings(set)
	if len(got) != maxWarnings+2 {
		t.Fatalf("%d warnings", len(got))
	}
	wantDiff(t, "warnings", []string{
		projectJSON + ":2: there are more than 1000 servers; those from here on were left out",
		projectJSON + ": 901 more warnings about this file are not shown",
		userJSON + `:1: Server "mine": unknown member "comand"; did you mean "command"?`,
	}, []string{got[0], got[maxWarnings], got[maxWarnings+1]})
}
