package configfile

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const newRow = `{"command":"/bin/d","args":["serve","--x"],"env":{"K":"v"}}`

// A setCase is one use of Set.
type setCase struct {
	data        string
	path        []string
	value, want string
	// back says that Remove gives data again.
	back bool
}

func (tt setCase) run(t *testing.T, format Format) {
	got, err := Set(format, []byte(tt.data), tt.path, json.RawMessage(tt.value))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tt.want, string(got)); diff != "" {
		t.Error("Set (-want +got):\n", diff)
	}
	value, ok, err := Get(format, got, tt.path)
	if err != nil || !ok || !equalJSON(t, value, tt.value) {
		t.Errorf("Get = %s, %v, %v", value, ok, err)
	}
	if !tt.back {
		return
	}
	back, err := Remove(format, got, tt.path)
	if diff := cmp.Diff(tt.data, string(back)); diff != "" || err != nil {
		t.Error("Remove (-want +got):\n", diff, err)
	}
}

func p(steps ...string) []string { return steps }

func TestSetJSON(t *testing.T) {
	for name, tt := range map[string]setCase{
		"a new document": {"", p("mcpServers", "d"), newRow,
			"{\n  \"mcpServers\": {\n    \"d\": {\n      \"command\": \"/bin/d\",\n      \"args\": [\"serve\", \"--x\"],\n      \"env\": {\n        \"K\": \"v\"\n      }\n    }\n  }\n}\n", false},
		"beside others, with comments": {
			"// top\n{\n\t\"a\": {\n\t\t\"x\": 1, // one\n\t\t\"y\": 2 // two\n\t\t// end\n\t},\n\t\"z\" : [ ]\n}",
			p("a", "d"), `{"k":[]}`,
			"// top\n{\n\t\"a\": {\n\t\t\"x\": 1, // one\n\t\t\"y\": 2, // two\n\t\t// end\n\t\t\"d\": {\n\t\t\t\"k\": []\n\t\t}\n\t},\n\t\"z\" : [ ]\n}", true},
		"a comma at the end stays": {"{\n    \"a\": 1, // one\n}\n", p("d"), `true`,
			"{\n    \"a\": 1, // one\n    \"d\": true,\n}\n", true},
		"an empty object": {"{\r\n  \"a\": {}\r\n}\r\n", p("a", "d"), `"x"`,
			"{\r\n  \"a\": {\r\n    \"d\": \"x\"\r\n  }\r\n}\r\n", true},
		"one line": {`{ "a": {"b": 1} }`, p("a", "d"), newRow,
			`{ "a": {"b": 1, "d": {"command": "/bin/d", "args": ["serve", "--x"], "env": {"K": "v"}}} }`, true},
		"no blanks": {`{"a":{"b":1}}`, p("a", "d"), newRow,
			`{"a":{"b":1,"d":{"command":"/bin/d","args":["serve","--x"],"env":{"K":"v"}}}}`, true},
		"a byte order mark": {"\ufeff{\n  \"a\": 1\n}", p("d"), `2`,
			"\ufeff{\n  \"a\": 1,\n  \"d\": 2\n}", true},
		"a comment behind everything": {"{\"a\": 1} // end", p("d"), `2`, "{\"a\": 1, \"d\": 2} // end", true},
		"missing parents": {"{\n  \"a\": 1\n}\n", p("b", "c", "d"), `1`,
			"{\n  \"a\": 1,\n  \"b\": {\n    \"c\": {\n      \"d\": 1\n    }\n  }\n}\n", false},
		"a null parent": {"{\n  \"b\": null\n}\n", p("b", "d"), `1`,
			"{\n  \"b\": {\n    \"d\": 1\n  }\n}\n", false},
		"replaced": {"{\n  \"d\": {\"x\": 1}, // keep\n  \"e\": 2\n}\n", p("d"), `{"y":2}`,
			"{\n  \"d\": {\n    \"y\": 2\n  }, // keep\n  \"e\": 2\n}\n", false},
		"the same value": {`{"d" : {"x":1 /* one */}}`, p("d"), `{"x":1}`,
			`{"d" : {"x":1 /* one */}}`, false},
		"an element": {"{\"servers\": [\n  {\"name\": \"a\"}\n]}\n",
			p("servers", ElementStep("name", "d")), `{"name":"d","command":"x"}`,
			"{\"servers\": [\n  {\"name\": \"a\"},\n  {\n    \"name\": \"d\",\n    \"command\": \"x\"\n  }\n]}\n",
			true},
		"a member of an element": {"{\"servers\": [\n  {\"name\": \"a\"}\n]}\n",
			p("servers", ElementStep("name", "a"), "enabled"), `false`,
			"{\"servers\": [\n  {\"name\": \"a\", \"enabled\": false}\n]}\n", true},
		"a new element's member": {`{"servers": []}`, p("servers", ElementStep("name", "a"), "enabled"), `false`,
			`{"servers": [{"name": "a", "enabled": false}]}`, false},
	} {
		t.Run(name, func(t *testing.T) { tt.run(t, JSON) })
	}
}

func TestSetTOML(t *testing.T) {
	for name, tt := range map[string]setCase{
		"a new document": {"", p("mcp_servers", "d"), newRow,
			"[mcp_servers.d]\ncommand = \"/bin/d\"\nargs = [\"serve\", \"--x\"]\nenv = { K = \"v\" }\n", false},
		"behind its siblings": {"# top\nx = 1\n\n[mcp_servers.a]\ncommand = \"x\" # c\n\n[mcp_servers.a.env]\nK = '''\n[no]\n'''\n\n# other\n[z]\ny = 2\n", p("mcp_servers", "d"), `{"command":"y"}`, "# top\nx = 1\n\n[mcp_servers.a]\ncommand = \"x\" # c\n\n[mcp_servers.a.env]\nK = '''\n[no]\n'''\n\n[mcp_servers.d]\ncommand = \"y\"\n\n# other\n[z]\ny = 2\n", true},
		"no line end at the end": {"[z]\r\ny = 2", p("mcp_servers", "d.e"), `{"command":"y"}`,
			"[z]\r\ny = 2\r\n\r\n[mcp_servers.\"d.e\"]\r\ncommand = \"y\"", true},
		"replaced": {"[m.d]\na = 1 # one\n[m.d.env]\nK = 1\n# tail\n[z]\n", p("m", "d"), `{"b":2}`,
			"[m.d]\nb = 2\n# tail\n[z]\n", false},
		"an inline table": {"[m]\nd = { a = 1 } # c\n", p("m", "d"), `{"b":2.0}`,
			"[m]\nd = { b = 2.0 } # c\n", false},
		"an element": {"[[mcp.servers]]\nid = \"a\"\n[mcp.servers.env]\nK = \"v\"\n\n[serve]\nx = 1\n",
			p("mcp", "servers", ElementStep("id", "d")), `{"id":"d","command":"x"}`,
			"[[mcp.servers]]\nid = \"a\"\n[mcp.servers.env]\nK = \"v\"\n\n[[mcp.servers]]\nid = \"d\"\ncommand = \"x\"\n\n[serve]\nx = 1\n", true},
		"a member of an element": {"[[mcp.servers]]\nid = \"a\"\n[[mcp.servers]]\n  id = \"b\" # b\n  [mcp.servers.env]\n  K = 1\n", p("mcp", "servers", ElementStep("id", "b"), "enabled"), `false`, "[[mcp.servers]]\nid = \"a\"\n[[mcp.servers]]\n  id = \"b\" # b\n  enabled = false\n  [mcp.servers.env]\n  K = 1\n", true},
		"a key is replaced": {"[a]\nenabled = true # on\n", p("a", "enabled"), `false`,
			"[a]\nenabled = false # on\n", false},
		"a key of the root": {"# c\n[a]\nb = 1\n", p("k"), `"v"`, "k = \"v\"\n# c\n[a]\nb = 1\n", true},
	} {
		t.Run(name, func(t *testing.T) { tt.run(t, TOML) })
	}
}

func TestSetYAML(t *testing.T) {
	for name, tt := range map[string]setCase{
		"a new document": {"", p("extensions", "d"),
			`{"cmd":"x","args":["a","--b"],"envs":{},"timeout":300}`,
			"extensions:\n  d:\n    cmd: x\n    args:\n    - a\n    - \"--b\"\n    envs: {}\n    timeout: 300\n",
			false},
		"beside others":          {"# top\nextensions:\n    # dev\n    a:\n        args:\n        - x # y\n        text: |\n            # no comment\n\n    # tail\n\nMODEL: m # model\n", p("extensions", "d"), `{"cmd":"x"}`, "# top\nextensions:\n    # dev\n    a:\n        args:\n        - x # y\n        text: |\n            # no comment\n    d:\n        cmd: x\n\n    # tail\n\nMODEL: m # model\n", true},
		"no line end at the end": {"a:\n  b: 1", p("a", "d"), `true`, "a:\n  b: 1\n  d: true", true},
		"an empty mapping": {"a: {} # none\nb: 1\n", p("a", "d"), `{"x":"on"}`,
			"a: # none\n  d:\n    x: \"on\"\nb: 1\n", false},
		"an empty mapping, no comment": {"a: {}\r\nb: 1\r\n", p("a", "d"), `1`, "a:\r\n  d: 1\r\nb: 1\r\n", true},
		"nothing yet":                  {"a:\nb: 1\n", p("a", "d"), `1`, "a:\n  d: 1\nb: 1\n", false},
		"braces": {"a: {b: 1} # c\n", p("a", "d"), `{"x":[1]}`,
			"a: {\"d\": {\"x\":[1]}, b: 1} # c\n", true},
		"replaced": {"a:\n  d:\n    x: 1\n\n  # e\n  e: 2\n", p("a", "d"), `{"z":2}`,
			"a:\n  d:\n    z: 2\n\n  # e\n  e: 2\n", false},
		"comments only": {"# nothing\n", p("a", "d"), `1`, "# nothing\na:\n  d: 1\n", false},
	} {
		t.Run(name, func(t *testing.T) { tt.run(t, YAML) })
	}
}

func equalJSON(t *testing.T, got json.RawMessage, want string) bool {
	t.Helper()
	var a, b any
	if err := decodeJSON(got, &a); err != nil {
		t.Fatal(err)
	}
	if err := decodeJSON([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	return cmp.Equal(normalizeTree(a), normalizeTree(b))
}

func TestRemove(t *testing.T) {
	for name, tt := range map[string]struct {
		format Format
		data   string
		path   []string
		want   string
	}{
		"JSON: the first": {JSON, "{\n  // a\n  \"a\": 1, // one\n  \"b\": 2\n}", p("a"),
			"{\n  // a\n  // one\n  \"b\": 2\n}"},
		"JSON: the middle":                 {JSON, `{"a": 1, "b": 2, "c": 3}`, p("b"), `{"a": 1, "c": 3}`},
		"JSON: a comment before the comma": {JSON, `{"a": 1 /* one */, "b": 2}`, p("a"), "{/* one */\n\"b\": 2}"},
		"JSON: the last": {JSON, "{\n  \"a\": 1, // one\n  // b\n  \"b\": 2\n}", p("b"),
			"{\n  \"a\": 1 // one\n  // b\n}"},
		"JSON: a comment swallows nothing": {JSON, "{\"a\": 1, // one\n\"b\": 2}", p("b"), "{\"a\": 1 // one\n}"},
		"JSON: the only one":               {JSON, "{\"a\": {\n  \"b\": 1,\n}}", p("a", "b"), "{\"a\": {}}"},
		"JSON: an element": {JSON, `{"s": [{"name": "a"}, {"name": "b"}]}`,
			p("s", ElementStep("name", "a")), `{"s": [{"name": "b"}]}`},
		"JSON: not there": {JSON, `{"a": 1}`, p("b", "c"), `{"a": 1}`},
		"TOML: with its tables": {TOML, "a = 1\n\n[m.d]\nx = 1\n\n[m.d.env]\nK = 1\n\n# z\n[z]\n",
			p("m", "d"), "a = 1\n\n# z\n[z]\n"},
		"TOML: in two places": {TOML, "[m.d]\nx = 1\n[z]\n[m.d.env]\nK = 1\n", p("m", "d"), "[z]\n"},
		"TOML: an element": {TOML, "[[s]]\nid = 'a'\n[[s]]\nid = 'b'\n[s.env]\nk=1\n[[s]]\nid = 'c'\n",
			p("s", ElementStep("id", "b")), "[[s]]\nid = 'a'\n[[s]]\nid = 'c'\n"},
		"TOML: dotted keys": {TOML, "[m]\nd.x = 1\ne = 2\nd.y = [\n 1, # one\n]\n", p("m", "d"),
			"[m]\ne = 2\n"},
		"YAML: with what is below": {YAML, "a:\n  d:\n  - 1\n  - x: |\n      # text\n  # e\n  e: 1\nf: 1\n",
			p("a", "d"), "a:\n  # e\n  e: 1\nf: 1\n"},
		"YAML: the last of the file": {YAML, "a: 1\nd:\n  x: 1", p("d"), "a: 1"},
		"YAML: the only one": {YAML, "a: # c\n  # d\n  d: 1\nb: 2\n", p("a", "d"),
			"a: {} # c\n  # d\nb: 2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Remove(tt.format, []byte(tt.data), tt.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error("Remove (-want +got):\n", diff)
			}
		})
	}
}

func TestWhatIsNotEdited(t *testing.T) {
	for name, tt := range map[string]struct {
		format      Format
		data        string
		path        []string
		value, want string
	}{
		"broken JSON": {JSON, "{\n  \"a\": ghp123\n}", []string{"d"}, "1",
			"line 2, column 8: this is not JSON"},
		"comments alone":     {JSON, "// nothing", []string{"d"}, "1", "line 2, column 1: this is not JSON"},
		"deep JSON":          {JSON, strings.Repeat("[", 1<<20), []string{"d"}, "1", "values nest deeper than 64"},
		"a list as a parent": {JSON, `{"a": []}`, []string{"a", "d"}, "1", `the parent of "d" is not an object`},
		"a name twice":       {JSON, `{"a": {}, "a": {}}`, []string{"a", "d"}, "1", `"a" is written twice`},
		"an element twice": {JSON, `{"s": [{"name": "a"}, {"name": "a"}]}`,
			[]string{"s", ElementStep("name", "a"), "x"}, "1", `"a" is written twice`},
		"a nameless element": {JSON, `{"s": []}`, []string{"s", ElementStep("name", "a")}, "{}",
			`the element does not have its name in "name"`},
		"no JSON to set": {JSON, `{}`, []string{"a"}, "{} {}", "the new value is not JSON, or has no place"},
		"broken TOML":    {TOML, "a = 1\nb = ghp\n", []string{"d"}, "1", "line 2: this is not TOML"},
		"deep TOML": {TOML, "a = " + strings.Repeat("[", 1<<20), []string{"d"}, "1",
			"values nest deeper than 64"},
		"TOML has no null": {TOML, "", []string{"d"}, `{"a": null}`, "TOML has no null"},
		"within an inline list": {TOML, `s = [{ id = "a" }]`, []string{"s", ElementStep("id", "d")},
			`{"id": "d"}`, byHand},
		"broken YAML":        {YAML, "a: 1\nb: [ghp\n", []string{"d"}, "1", "line 1: this is not YAML"},
		"two YAML documents": {YAML, "a: 1\n---\nb: 1\n", []string{"d"}, "1", "this is not one YAML document"},
		"a YAML anchor":      {YAML, "a: &x\n  b: 1\nc: *x\n", []string{"a", "d"}, "1", errEditByHand.Error()},
		"a YAML alias bomb": {YAML,
			"a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n", []string{"z"}, "1", "this is not YAML"},
		"a YAML line's other end": {YAML, "a: 1\rb:\rc: 1\n", []string{"b", "d"}, "1", errEditByHand.Error()},
		"an unknown format":       {"INI", "", []string{"z"}, "1", `unknown format "INI"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Set(tt.format, []byte(tt.data), tt.path, json.RawMessage(tt.value))
			if err == nil || err.Error() != tt.want || got != nil {
				t.Errorf("Set = %q, %v, want %s", got, err, tt.want)
			}
		})
	}
}

const byHand = "the file is written in a way that cannot be edited without touching other values; edit it by hand"

// fuzzEdits checks what is promised of every edit that is made at all.
func fuzzEdits(f *testing.F, format Format, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed), "a", "d", `{"x":["y",1,true]}`)
		f.Add([]byte(seed), "b", "d", `"text"`)
	}
	f.Fuzz(func(t *testing.T, data []byte, parent, name, value string) {
		path := []string{parent, name}
		_, had, _ := Get(format, data, path)
		if strings.HasPrefix(parent+name, "\x00") {
			return
		}
		out, err := Set(format, data, path, json.RawMessage(value))
		if err != nil {
			return
		}
		got, ok, err := Get(format, out, path)
		if err != nil || !ok || !equalJSON(t, got, value) {
			t.Fatalf("Set %q, then Get = %s, %v, %v", out, got, ok, err)
		}
		back, err := Remove(format, out, path)
		if err != nil {
			return
		}
		if _, ok, err := Get(format, back, path); ok || err != nil {
			t.Fatalf("Remove from %q left %q, %v", out, back, err)
		}
		if promised(format, data, parent) && !had && string(back) != string(data) {
			t.Fatalf("Set gave %q, Remove %q of %q", out, back, data)
		}
	})
}

// promised says whether Remove undoes Set to the byte: here, where a parent has other members.
func promised(format Format, data []byte, parent string) bool {
	raw, ok, err := Get(format, data, []string{parent})
	return format == JSON && ok && err == nil && raw[0] == '{' && string(raw) != "{}"
}

func FuzzEditJSON(f *testing.F) {
	fuzzEdits(f, JSON, "", "{}", `{"a": {"b": 1}}`, "{\n  \"a\": {\n    \"b\": 1, // c\n  },\n}\n",
		"{\n  \"a\": {\n    \"b\": 1 // c\n    /* d */\n  }\n}\n", `{"a":null /*x*/,"b":{}}`)
}

func FuzzEditTOML(f *testing.F) {
	fuzzEdits(f, TOML, "", "x = 1", "[a]\nb = 1 # c\n\n[a.c]\nd = '''\n'''\n", "[[a]]\nb = [ # c\n1,]\n",
		"a.b = {c = 1}\n")
}

func FuzzEditYAML(f *testing.F) {
	fuzzEdits(f, YAML, "", "a: {}", "a:\n  b: |\n    text\n  # c\nx: &y [1]\nz: *y\n", "{a: {b: 1}, c: 2}\n",
		"a:\n- b\n- c: 1\n")
}
