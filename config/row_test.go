package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// rowOf loads one server "n" that is written as JSON.
func rowOf(t *testing.T, w *world, members string) (Server, []string) {
	t.Helper()
	w.write(t, userJSON, `{"servers": {"n": `+members+`}}`)
	set := w.mustLoad(t)
	if len(set.Servers) != 1 {
		t.Fatalf("%d servers", len(set.Servers))
	}
	return set.Servers[0], w.warnings(set)
}

func TestTheFourShapes(t *testing.T) {
	array := `[{"name": "fs", "command": "node"}, {"name": "web", "url": "https://example.com/mcp"}]`
	object := `{"fs": {"command": "node"}, "web": {"url": "https://example.com/mcp"}}`
	var hashes []string
	for name, content := range map[string]string{
		"servers array":     `{"servers": ` + array + `}`,
		"servers object":    `{"servers": ` + object + `}`,
		"mcpServers array":  `{"mcpServers": ` + array + `}`,
		"mcpServers object": `{"mcpServers": ` + object + `}`,
		"comments": "\ufeff{ // a comment\n /* and\n another */ \"servers\": {\"fs\": {\"command\": \"node\",}, " +
			"\"web\": {\"url\": \"https://example.com/mcp\"},},} // the end",
	} {
		t.Run(name, func(t *testing.T) {
			set := newWorld(t, map[string]string{userJSON: content}).mustLoad(t)
			wantDiff(t, "servers", []string{"fs user idle", "web user idle"}, short(set.Servers))
			wantDiff(t, "warnings", []Warning(nil), set.Warnings)
			fs, web := set.Servers[0], set.Servers[1]
			if fs.Type != "stdio" || fs.Transport() != "stdio" || web.Type != "" || web.Transport() != "http or sse" {
				t.Errorf("types %q, %q", fs.Type, web.Type)
			}
			hashes = append(hashes, fs.Hash)
		})
	}
	for _, h := range hashes {
		if h != hashes[0] || len(h) != 64 {
			t.Errorf("hashes differ between the shapes: %v", hashes)
		}
	}
}

func TestLinesOfRows(t *testing.T) {
	for name, tt := range map[string]struct{ file, content string }{
		"object": {userJSON, "{\n\"servers\": {\n\n  \"a\": {},\n  \"b\":\n {}}}"},
		"array":  {userJSON, "{\"servers\": [\n\n /* {\n */ {\"name\": \"a\"},\n{\n\"name\": \"b\"}]}"},
		"toml":   {userTOML, "# rows\n\n\n[[mcp.servers]]\nid = \"\"\"\n[[mcp.servers]]\"\"\"\n[[mcp.servers]]\n"},
		"inline": {userTOML, "[mcp]\n\nservers = [\n{ id = 'a' },\n{ id = 'b' }, # c\n]"},
	} {
		t.Run(name, func(t *testing.T) {
			set := newWorld(t, map[string]string{tt.file: tt.content}).mustLoad(t)
			var lines []int
			for _, s := range set.Servers {
				lines = append(lines, s.Origin.Line)
			}
			want := []int{4, 5}
			if name == "toml" {
				want = []int{4, 7}
			}
			wantDiff(t, "lines", want, lines)
		})
	}
}

// allMembers is a row that says everything, in JSON.
const allMembers = `{
	"type": "local", "command": "npx", "args": ["-y", "pkg"], "cwd": "/srv",
	"env": {"Z": "1", "A": "2", "N": 3.50, "B": true},
	"enabled": true, "timeout": 1500,
	"expected_tools": ["read"], "lock_tool_list": true, "env_isolation": false, "elicitation_enabled": true,
	"isolate": "session", "share": "all", "credentials": "work", "confine": "auto", "idle_stop": "5m",
	"trust": "sandboxed", "auth": {"type": "oauth", "clientId": "x"}, "oauth": {"scope": "a b"}, "fence": true, "max_tools": 7,
	"imported_from": "cursor"
}`

func TestEveryMember(t *testing.T) {
	yes, no := true, false
	w := newWorld(t, nil)
	got, warnings := rowOf(t, w, allMembers)
	want := Server{
		ID: "n", Type: "stdio", Command: "npx", Args: []string{"-y", "pkg"}, Cwd: filepath.FromSlash("/srv"),
		Env:     []NameValue{{"Z", "1"}, {"A", "2"}, {"N", "3.50"}, {"B", "true"}},
		Enabled: true, Timeout: 1500 * time.Millisecond,
		ExpectedTools: &[]string{"read"}, LockToolList: &yes, EnvIsolation: &no, ElicitationEnabled: &yes,
		Isolate: "session", Share: "all", Credentials: "work", Confine: Confinement{Level: "auto"},
		IdleStop: 5 * time.Minute,
		Trust:    "sandboxed", Auth: &Auth{Type: "oauth", ClientID: "x", Scopes: []string{"a", "b"}},
		Spotlight: &yes, MaxTools: 7,
		ImportedFrom: "cursor", Provider: "native", Origin: Origin{OriginUser, w.path(userJSON), 1},
		Raw: json.RawMessage(
			`{"type":"local","command":"npx","args":["-y","pkg"],"env":{"Z":"1","A":"2","N":3.50,"B":true},` +
				`"cwd":"/srv","enabled":true,"timeout":1500,"expected_tools":["read"],"lock_tool_list":true,"env_isolation":false,` +
				`"elicitation_enabled":true,"isolate":"session","share":"all","credentials":"work","confine":"auto","idle_stop":"5m",` +
				`"trust":"sandboxed","auth":{"type":"oauth","clientId":"x"},"oauth":{"scope":"a b"},"fence":true,"max_tools":7,"imported_from":"cursor"}`),
		Hash: got.Hash, Phase: drawbridge.Idle,
	}
	if runtime.GOOS != "windows" {
		wantDiff(t, "row", want, got)
	}
	wantDiff(t, "warnings", []string(nil), warnings)

	w = newWorld(t, map[string]string{userTOML: `
[[mcp.servers]]
id = "n"
type = "local"
command = "npx"
args = ["-y", "pkg"]
cwd = "/srv"
enabled = true
timeout = 1500
expected_tools = ["read"]
lock_tool_list = true
env_isolation = false
elicitation_enabled = true
isolate = "session"
share = "all"
credentials = "work"
confine = "auto"
idle_stop = "5m"
trust = "sandboxed"
auth = { type = "oauth", clientId = "x" }
oauth = { scope = "a b" }
fence = true
max_tools = 7
imported_from = "cursor"
[mcp.servers.env]
Z = "1"
A = "2"
N = 3.5
B = true
`})
	fromTOML := w.mustLoad(t).Servers[0]
	want.Origin, want.Hash = Origin{OriginUser, w.path(userTOML), 2}, fromTOML.Hash
	want.Env[2].Value = "3.5"
	want.Raw = []byte(strings.Replace(string(want.Raw), "3.50", "3.5", 1))
	if runtime.GOOS != "windows" {
		wantDiff(t, "row in TOML", want, fromTOML)
	}
}

func TestOrderOfEnvAndHeadersIsKept(t *testing.T) {
	want := []NameValue{{"Z", "1"}, {"A", "2"}, {"M", "3"}}
	w := newWorld(t, map[string]string{
		userJSON: `{"servers": {"json": {"url": "https://h", "headers": {"Z": "1", "A": "2", "M": "3"}}}}`,
		userTOML: "[[mcp.servers]]\nid='other'\ncommand='x'\nenv={A='1', Z='2'}\n" +
			"[[mcp.servers]]\nid='toml'\nurl='https://h'\nheaders={Z='1', A='2', M='3'}\n" +
			"[[mcp.servers]]\nid='dotted'\nurl='https://h'\nheaders.Z='1'\nheaders.A='2'\nheaders.'M'='3'\n",
	})
	set := w.mustLoad(t)
	for _, name := range []drawbridge.ServerID{"json", "toml", "dotted"} {
		row, _ := set.Lookup(name)
		wantDiff(t, string(name), want, row.Headers)
	}
	row, _ := set.Lookup("other")
	wantDiff(t, "other", []NameValue{{"A", "1"}, {"Z", "2"}}, row.Env)
}

func TestTypes(t *testing.T) {
	for typ, want := range map[string]string{
		"stdio": "stdio", "local": "stdio",
		"http": "http", "streamable-http": "http", "streamableHttp": "http", "streamable_http": "http",
		"remote": "http",
		"sse":    "sse",
	} {
		members := `{"type": "` + typ + `", "url": "https://example.com/mcp"}`
		if want == "stdio" {
			members = `{"type": "` + typ + `", "command": "x"}`
		}
		if row, _ := rowOf(t, newWorld(t, nil), members); row.Type != want || row.Phase != drawbridge.Idle {
			t.Errorf("type %q: %q, %s %s", typ, row.Type, row.Phase, row.Reason)
		}
	}
}

func TestRefusedRows(t *testing.T) {
	for members, want := range map[string]string{
		`{"command": "x", "url": "https://h"}`:                 `Server "n": both "command" and "url" are set - server should be either stdio (command) OR http/sse (url), not both`,
		`{}`:                                                   `Server "n": stdio server requires "command" field`,
		`{"command": ""}`:                                      `Server "n": stdio server requires "command" field`,
		`{"type": "stdio", "url": "https://h"}`:                `Server "n": stdio server requires "command" field`,
		`{"type": "http"}`:                                     `Server "n": http server requires "url" field`,
		`{"type": "remote", "command": "x"}`:                   `Server "n": http server requires "url" field`,
		`{"type": "sse"}`:                                      `Server "n": sse server requires "url" field`,
		`{"type": "x", "command": "x"}`:                        `Server "n": unknown server type "x"`,
		`{"type": 5, "command": "x"}`:                          `Server "n": "type" must be a string`,
		`{"url": "ftp://h/x"}`:                                 `Server "n": "url" must be an http or https URL with a host`,
		`{"url": "https://"}`:                                  `Server "n": "url" must be an http or https URL with a host`,
		`{"url": "https://:80/"}`:                              `Server "n": "url" must be an http or https URL with a host`,
		`{"url": "localhost:80"}`:                              `Server "n": "url" must be an http or https URL with a host`,
		`{"url": "http://${HOST}/mcp"}`:                        `Server "n": "url" must be an http or https URL with a host (not set: HOST)`,
		`{"url": "https://h", "headers": {"a b": "x"}}`:        `Server "n": "headers" has "a b", which is not a header name`,
		`{"url": "https://h", "headers": {"X": "a\r\nY: b"}}`:  `Server "n": header "X" has a line break or another control character in its value`,
		`{"command": "x", "env": {"A=B": "x"}}`:                `Server "n": "env" has "A=B", which no environment can hold`,
		`{"command": "x", "args": ["a\u0000b"]}`:               `Server "n": "command", "args" and "cwd" cannot hold a NUL character`,
		`{"command": ["x"]}`:                                   `Server "n": "command" must be a string`,
		`{"command": "x", "args": "y"}`:                        `Server "n": "args" must be a list of strings`,
		`{"command": "x", "env": ["A=B"]}`:                     `Server "n": "env" must be an object of strings`,
		`{"command": "x", "cwd": 1}`:                           `Server "n": "cwd" must be a string`,
		`{"url": 1}`:                                           `Server "n": "url" must be a string`,
		`{"url": "https://h", "headers": "x"}`:                 `Server "n": "headers" must be an object of strings`,
		`{"command": "x", "expected_tools": "read"}`:           `Server "n": "expected_tools" must be a list of strings`,
		`{"command": "x", "expected_tools": [1]}`:              `Server "n": "expected_tools" must be a list of strings`,
		`{"command": "x", "lock_tool_list": "yes"}`:            `Server "n": "lock_tool_list" must be true or false`,
		`{"command": "x", "env_isolation": 1}`:                 `Server "n": "env_isolation" must be true or false`,
		`{"command": "x", "elicitation_enabled": "x"}`:         `Server "n": "elicitation_enabled" must be true or false`,
		`{"command": "x", "fence": "x"}`:                       `Server "n": "fence" must be true or false`,
		`{"command": "x", "isolate": "sesion"}`:                `Server "n": "isolate" must be "session"`,
		`{"command": "x", "share": "some"}`:                    `Server "n": "share" must be "all"`,
		`{"command": "x", "trust": "TRUSTED"}`:                 `Server "n": "trust" must be "trusted", "untrusted" or "sandboxed"`,
		`{"command": "x", "confine": 1}`:                       `Server "n": "confine" must be "off", "auto" or "required", or an object`,
		`{"command": "x", "confine": "on"}`:                    `Server "n": "confine" must be "off", "auto" or "required", or an object`,
		`{"command": "x", "confine": {"wirte": ["/x"]}}`:       `Server "n": "confine" has no member "wirte"; did you mean "write"?`,
		`{"command": "x", "confine": {"read": "/x"}}`:          `Server "n": "confine.read" must be a list of paths`,
		`{"command": "x", "confine": {"network": "no"}}`:       `Server "n": "confine.network" must be true or false`,
		`{"command": "x", "confine": {"read": ["${file:x}"]}}`: `Server "n": "confine" cannot hold ${file:…}: values of "env" and "headers", and "client_id" and "client_secret" in "auth" may`,
		`{"url": "https://h", "confine": "required"}`:          `Server "n": "confine" is for programs that are started here: what is behind a url cannot be confined`,
		`{"command": "x", "credentials": []}`:                  `Server "n": "credentials" must be a string`,
		`{"command": "x", "max_tools": 0}`:                     `Server "n": "max_tools" must be a whole number above 0`,
		`{"command": "x", "max_tools": "5"}`:                   `Server "n": "max_tools" must be a whole number above 0`,
		`{"command": "x", "auth": 1}`:                          `Server "n": "auth" must be an object, or false`,
		`{"command": "npx", "args": ["drawbridge", "serve"]}`:  `Server "n": starts Drawbridge itself, which would mount itself without end`,
		`"npx"`: `Server "n": a server must be an object`,
		`null`:  `Server "n": a server must be an object`,
		`{"command": "drawbridge", "args": ["serve"]}`:            `Server "n": starts Drawbridge itself, which would mount itself without end`,
		`{"command": "/o/drawbridge", "args": ["-v","serve"]}`:    `Server "n": starts Drawbridge itself, which would mount itself without end`,
		`{"command": "C:\\b\\Drawbridge.EXE", "args": ["serve"]}`: `Server "n": starts Drawbridge itself, which would mount itself without end`,
		`{"command": "${BRIDGE:-drawbridge}", "args": ["serve"]}`: `Server "n": starts Drawbridge itself, which would mount itself without end`,
	} {
		w := newWorld(t, nil)
		row, _ := rowOf(t, w, members)
		if row.Phase != drawbridge.Refused || row.Reason != want {
			t.Errorf("%s\n got %s: %s\nwant refused: %s", members, row.Phase, row.Reason, want)
		}
	}
}

func TestRowsThatOnlyLookRefused(t *testing.T) {
	for _, members := range []string{
		`{"command": "drawbridge", "args": ["mcp"]}`,
		`{"command": "drawbridge-helper", "args": ["serve"]}`,
		`{"command": "x", "url": ""}`,
		`{"command": "x", "url": null, "trust": null, "expected_tools": null}`,
		`{"url": "HTTPS://user@[::1]:8443/mcp?key=${KEY}"}`,
		`{"url": "https://h", "headers": {"X": "tab\tand ünïcode"}}`,
	} {
		row, _ := rowOf(t, newWorld(t, nil), members)
		if row.Phase != drawbridge.Idle || row.Reason != "" {
			t.Errorf("%s: %s: %s", members, row.Phase, row.Reason)
		}
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("x", drawbridge.MaxServerID+1)
	w := newWorld(t, map[string]string{userJSON: `{"servers": [
		{"command": "x"}, {"name": "", "command": "x"}, {"name": 7, "command": "x"}, {"name": "a b", "command": "x"},
		{"name": "a__b", "command": "x"}, {"name": "` + long + `", "command": "x"}, "npx", {"name": "fine", "command": "x"}, {"name": "DrawBridge", "command": "x"}, {"name": "drawbridge_", "url": "https://h", "enabled": false},
		{"name": "drawbridge", "command": "drawbridge", "args": ["serve"]}, {"name": "drawbridge-docs", "command": "x"}]}`,
		projectJSON: `{"mcpServers": {"drawbridge": {"command": "y"}}}`})
	var got []string
	for _, s := range w.mustLoad(t).Servers {
		got = append(got, s.Reason)
	}
	wantDiff(t, "reasons", []string{
		`Server name "drawbridge" is reserved for the tools of Drawbridge itself; choose another name`, // the project's
		"Server name cannot be empty", "Server name cannot be empty", "Server name cannot be empty",
		"Server name can only contain letters, numbers, dash, underscore, and dot",
		`Server name cannot contain "__"`,
		"Server name is too long (max 100 characters)",
		"Server name cannot be empty",
		"",
		`Server name "DrawBridge" is reserved for the tools of Drawbridge itself; choose another name`,
		`Server name "drawbridge_" is reserved for the tools of Drawbridge itself; choose another name`,
		`Server "drawbridge": starts Drawbridge itself, which would mount itself without end`,
		"",
	}, got)
}

// TestHostileNames shows that no name reaches a terminal which a terminal would obey, or that fills it.
func TestHostileNames(t *testing.T) {
	w := newWorld(t, map[string]string{
		projectJSON: `{"servers": {"\u001b[2J": {"command": "x", "\u001b]0;": 1, "args": ["` +
			strings.Repeat("${A}${B}", 9) + `"]}, "` +
			strings.Repeat("y", 1000) + `": {"url": "${` + strings.Repeat("z", 20) + `}"}}}`,
		projectTOML: "\"\\u001b[2J\" = 1\n\"\\u001b[2J\" = 2\n",
	})
	set := w.mustLoad(t)
	said := strings.Join(w.warnings(set), "\n")
	for _, s := range set.Servers {
		said += "\n" + string(s.ID) + "\n" + s.Reason
		if s.Phase != drawbridge.Refused || len(s.ID) > 250 {
			t.Errorf("%q: %s", s.ID, s.Phase)
		}
	}
	if len(set.Servers) != 2 || !strings.Contains(said, "has already been defined") {
		t.Errorf("%d servers, %q", len(set.Servers), said)
	}
	if strings.Contains(said, "\x1b") {
		t.Errorf("an escape in %q", said)
	}
}

func TestEnabled(t *testing.T) {
	ignored := []string{userJSON + `:1: Server "n": "enabled" must be true or false; it was ignored`}
	for value, want := range map[string]struct {
		enabled  bool
		warnings []string
	}{
		`true`: {true, nil}, `"true"`: {true, nil}, `"1"`: {true, nil},
		`false`: {false, nil}, `"false"`: {false, nil}, `"0"`: {false, nil},
		`null`: {true, nil},
		`0`:    {true, ignored}, `"off"`: {true, ignored}, `[]`: {true, ignored},
	} {
		row, warnings := rowOf(t, newWorld(t, nil), `{"command": "x", "enabled": `+value+`}`)
		wantDiff(t, value, want.warnings, warnings)
		phase := drawbridge.Idle
		if !want.enabled {
			phase = drawbridge.Disabled
		}
		if row.Enabled != want.enabled || row.Phase != phase {
			t.Errorf("enabled %s: %v, %s", value, row.Enabled, row.Phase)
		}
	}
}

func TestTimes(t *testing.T) {
	ignored := func(name string) []string {
		what := `a number of milliseconds above 0, or a time such as "30s"`
		if name == "idle_stop" {
			what = `a time above 0 such as "15m", a number of milliseconds, or "never"`
		}
		return []string{fmt.Sprintf(`%s:1: Server "n": %q must be %s; it was ignored`, userJSON, name, what)}
	}
	for _, tt := range []struct {
		name, value string
		want        time.Duration
		ok          bool
	}{
		{"timeout", `5000`, 5 * time.Second, true},
		{"timeout", `2.5`, 2500 * time.Microsecond, true},
		{"timeout", `"5000"`, 5 * time.Second, true},
		{"timeout", `"1m30s"`, 90 * time.Second, true},
		{"timeout", `0`, 0, false},
		{"timeout", `-1`, 0, false},
		{"timeout", `1e300`, 0, false},
		{"timeout", `true`, 0, false},
		{"timeout", `"soon"`, 0, false},
		{"timeout", `"NaN"`, 0, false},
		{"timeout", `"never"`, 0, false},
		{"idle_stop", `"1h"`, time.Hour, true},
		{"idle_stop", `"never"`, -1, true},
		{"idle_stop", `0`, 0, false},
		{"idle_stop", `{}`, 0, false},
	} {
		row, warnings := rowOf(t, newWorld(t, nil), fmt.Sprintf(`{"command": "x", %q: %s}`, tt.name, tt.value))
		if got := row.Timeout + row.IdleStop; got != tt.want || row.Phase != drawbridge.Idle {
			t.Errorf("%s %s: %v, want %v", tt.name, tt.value, got, tt.want)
		}
		var want []string
		if !tt.ok {
			want = ignored(tt.name)
		}
		wantDiff(t, tt.name+" "+tt.value, want, warnings)
	}
}

func TestExpectedToolsAbsentIsNotEmpty(t *testing.T) {
	absent, _ := rowOf(t, newWorld(t, nil), `{"command": "x"}`)
	empty, _ := rowOf(t, newWorld(t, nil), `{"command": "x", "expected_tools": []}`)
	if absent.ExpectedTools != nil {
		t.Error("absent: not nil")
	}
	wantDiff(t, "empty", &[]string{}, empty.ExpectedTools)
}

func TestWhatIsDroppedIsSaid(t *testing.T) {
	w := newWorld(t, nil)
	row, warnings := rowOf(t, w, "{\"command\": \"x\", \"args\": [\"a\", 5,\n null, \"b\"],\n"+
		"\"env\": {\"A\": \"1\", \"L\": [],\n \"N\": null, \"A\": \"2\"}, \"command\": \"y\", \"comand\": {\"b\": 1, /* c */ \"a\": [\"<\"]},\n"+
		"\"id\": \"z\", \"name\": \"other\"}")
	wantDiff(t, "args", []string{"a", "b"}, row.Args)
	wantDiff(t, "env", []NameValue{{"A", "2"}}, row.Env)
	wantDiff(t, "extra", []UnknownMember{
		{"comand", json.RawMessage(`{"b":1,"a":["<"]}`)}, {"id", json.RawMessage(`"z"`)},
		{"name", json.RawMessage(`"other"`)},
	}, row.UnknownMembers)
	if row.Command != "y" || row.Phase != drawbridge.Idle {
		t.Errorf("command %q, %s", row.Command, row.Phase)
	}
	at := func(line int, text string) string { return fmt.Sprintf(`%s:%d: Server "n": %s`, userJSON, line, text) }
	wantDiff(t, "warnings", []string{
		at(1, `"command" is written twice; the last one is used`),
		at(1, `"args" item 2 is not a string and was left out`),
		at(2, `"args" item 3 is not a string and was left out`),
		at(3, `"L" in "env" is not a string and was left out`),
		at(4, `"N" in "env" is not a string and was left out`),
		at(4, `unknown member "comand"; did you mean "command"?`),
		at(5, `"id" is not used here; a server is named by its key`),
		at(5, `"name" is not used here; a server is named by its key`),
	}, warnings)

	w = newWorld(t, map[string]string{userTOML: "[[mcp.servers]]\nid = 's'\ncommand = 'x'\n\nname = 't'\nwhatever = 2000-01-02\n"})
	set := w.mustLoad(t)
	wantDiff(t, "warnings in TOML", []string{
		userTOML + `:5: Server "s": "name" is not used here; a server is named by "id"`,
		userTOML + `:6: Server "s": unknown member "whatever"`,
	}, w.warnings(set))
}

func TestVariables(t *testing.T) {
	w := newWorld(t, nil)
	w.env = map[string]string{"SET": "value", "EMPTY": "", "HOST": "example.com"}
	row, warnings := rowOf(t, w, `{
		"command": "${SET}", "args": ["${EMPTY:-d}", "a${NONE:-b}c", "${NONE}", "$SET"],
		"env": {"${SET}": "${SET}", "T": "${TOKEN}", "U": "${NONE}"}, "cwd": "/${SET}", "credentials": "set"}`)
	if row.Command != "value" || filepath.ToSlash(row.Cwd) != "/value" && runtime.GOOS != "windows" ||
		row.Credentials != "set" {
		t.Errorf("command %q, cwd %q, credentials %q", row.Command, row.Cwd, row.Credentials)
	}
	wantDiff(t, "args", []string{"", "abc", "${NONE}", "$SET"}, row.Args)
	wantDiff(t, "env", []NameValue{{"${SET}", "value"}, {"T", "${TOKEN}"}, {"U", "${NONE}"}}, row.Env)
	wantDiff(t, "unresolved", []string{"NONE", "TOKEN"}, row.Unresolved)
	wantDiff(t, "warnings",
		[]string{userJSON + `:1: Server "n": variables that are not set were left as written: NONE, TOKEN`}, warnings)

	row, _ = rowOf(t, w, `{"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${SET}"}}`)
	if row.URL != "https://example.com/mcp" {
		t.Errorf("url %q", row.URL)
	}
	wantDiff(t, "headers", []NameValue{{"Authorization", "Bearer value"}}, row.Headers)
}

func TestARelativeCwdStartsAtTheWorkingDirectory(t *testing.T) {
	w := newWorld(t, nil)
	row, _ := rowOf(t, w, `{"command": "x", "cwd": "sub"}`)
	if want := w.path("project/sub"); row.Cwd != want {
		t.Errorf("cwd %q, want %q", row.Cwd, want)
	}
}

func TestSecretsAreNeverRepeated(t *testing.T) {
	w := newWorld(t, nil)
	w.env["TOKEN"] = "hunter2"
	for _, members := range []string{
		`{"command": "x", "url": "https://${TOKEN}@h"}`,
		`{"url": "${TOKEN}", "headers": {"A": "${TOKEN}"}}`,
		`{"url": "https://h:${TOKEN}/"}`,
		`{"url": "https://h", "headers": {"A": "${TOKEN}\n"}}`,
		`{"command": "x", "env": {"A": "${TOKEN}\u0000"}}`,
		`{"command": "x", "args": ["${TOKEN}\u0000"]}`,
		`{"command": "x", "env": {"A": ["hunter2"]}, "args": [{"hunter2": 1}], "timeout": "hunter2"}`,
		`{"command": "x", "env": {"A": "${NONE:=hunter2}", "B": "${NONE-hunter2}", "C": "${NONE:hunter2}", "D": "${env:NONE:hunter2}"}}`,
		`{"url": "${NONE:=hunter2}"}`,
	} {
		row, warnings := rowOf(t, w, members)
		if said := row.Reason + strings.Join(append(warnings, row.Unresolved...), "\n"); said == "" ||
			strings.Contains(said, "hunter2") {
			t.Errorf("%s says %q", members, said)
		}
	}
}

func TestHash(t *testing.T) {
	hash := func(members string) string {
		w := newWorld(t, nil)
		w.env["TOKEN"] = t.Name()
		row, _ := rowOf(t, w, members)
		return row.Hash
	}
	base := hash(`{"command": "npx", "args": ["a", "b"], "env": {"X": "${TOKEN}", "Y": "2"}}`)
	for name, members := range map[string]string{
		"layout":        "{\n\"command\"  :\"npx\",\"args\":[\"a\",\"b\",],\"env\":{\"X\":\"${TOKEN}\",\"Y\":\"2\"}}",
		"order":         `{"env": {"Y": "2", "X": "${TOKEN}"}, "args": ["a", "b"], "command": "npx"}`,
		"a comment":     `{"command": "npx", /* why */ "args": ["a", "b"], "env": {"X": "${TOKEN}", "Y": "2"}}`,
		"escapes":       `{"command": "n\u0070x", "args": ["a", "b"], "env": {"X": "${TOKEN}", "Y": "2"}}`,
		"a null":        `{"command": "npx", "args": ["a", "b"], "env": {"X": "${TOKEN}", "Y": "2"}, "cwd": null}`,
		"other members": `{"command": "npx", "args": ["a", "b"], "env": {"X": "${TOKEN}", "Y": "2"}, "enabled": false, "timeout": 5, "idle_stop": "1h", "note": "x", "imported_from": "codex"}`,
	} {
		if hash(members) != base {
			t.Errorf("%s changes the hash", name)
		}
	}
	for name, members := range map[string]string{
		"args":      `{"command": "npx", "args": ["b", "a"], "env": {"X": "${TOKEN}", "Y": "2"}}`,
		"env":       `{"command": "npx", "args": ["a", "b"], "env": {"X": "${TOKEN}", "Y": "3"}}`,
		"isolation": `{"command": "npx", "args": ["a", "b"], "env": {"X": "${TOKEN}", "Y": "2"}, "env_isolation": false}`,
		"trust":     `{"command": "npx", "args": ["a", "b"], "env": {"X": "${TOKEN}", "Y": "2"}, "trust": "trusted"}`,
	} {
		if hash(members) == base {
			t.Errorf("%s does not change the hash", name)
		}
	}

	// The rule itself: the members that count, as JSON sorted by name.
	if got, want := hash(`{"command": "x"}`), "f72162547d12d5fe"; !strings.HasPrefix(got, want) {
		t.Errorf(`hash of {"command":"x","name":"n"} is %s, want %s…`, got, want)
	}
}

func TestHashIgnoresTheEnvironment(t *testing.T) {
	w := newWorld(t,
		map[string]string{userJSON: `{"servers": {"s": {"url": "https://h", "headers": {"A": "${TOKEN}"}}}}`})
	w.env["TOKEN"] = "old"
	before := w.mustLoad(t).Servers[0]
	w.env["TOKEN"] = "new"
	after := w.mustLoad(t).Servers[0]
	if before.Headers[0].Value != "old" || after.Headers[0].Value != "new" || before.Hash != after.Hash {
		t.Errorf("%v, then %v", before, after)
	}
}

// TestProgramsOfProjectsAreConfined, unless their row says otherwise.
func TestProgramsOfProjectsAreConfined(t *testing.T) {
	const rows = `{"servers": {"default": {"command": "x"}, "off": {"command": "x", "confine": "off"},
		"null": {"command": "x", "confine": null}, "strict": {"command": "x", "confine": "required"}, "far": {"url": "https://h"}}}`
	levels := func(set Configuration) map[string]string {
		found := map[string]string{}
		for _, s := range set.Servers {
			found[string(s.ID)] = s.Confine.Level
		}
		return found
	}
	own := map[string]string{"default": "", "off": "", "null": "", "strict": "required", "far": ""}
	wantDiff(t, "own rows", own, levels(newWorld(t, map[string]string{userJSON: rows}).mustLoad(t)))
	projects := map[string]string{"default": "auto", "off": "", "null": "auto", "strict": "required", "far": ""}
	wantDiff(t, "rows of a project", projects, levels(newWorld(t, map[string]string{projectJSON: rows}).mustLoad(t)))
}
