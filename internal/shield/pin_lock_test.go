package shield_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/google/go-cmp/cmp"
)

func locked(server, tool, definition string) shield.LockedTool {
	return shield.LockedTool{Server: drawbridge.ServerID(server), Tool: tool, Definition: json.RawMessage(definition)}
}

func TestLockfile(t *testing.T) {
	tools := []shield.LockedTool{
		locked("github", "put", `{"name": "put", "description": "Puts <a> file.\u200b 日本"}`),
		locked("fs", "z", `{"name":"z"}`),
		locked("fs", "odd name", `{"inputSchema":{"maximum":10000000000000000001}, "name":"odd name"}`),
	}
	text, leftOut := shield.FormatLockfile(append(slices.Clone(tools),
		locked("fs", "two", `{"name":"two","x":1,"x":2}`)))
	if len(leftOut) != 1 || leftOut[0].Tool != "two" {
		t.Errorf("left out: %v", leftOut)
	}
	want := `{"drawbridge.lock":1}
{"server":"fs","tool":"odd name","hash":"sha256:","definition":{"inputSchema":{"maximum":10000000000000000001},"name":"odd name"}}
{"server":"fs","tool":"z","hash":"sha256:","definition":{"name":"z"}}
{"server":"github","tool":"put","hash":"sha256:","definition":{"description":"Puts <a> file.\u200b 日本","name":"put"}}
`
	if diff := cmp.Diff(unhashed(want), unhashed(string(text))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got, err := shield.ParseLockfile("drawbridge.lock", text)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range []shield.LockedTool{tools[2], tools[1], tools[0]} {
		if got[i].Server != l.Server || got[i].Tool != l.Tool ||
			shield.Fingerprint(got[i].Definition) != shield.Fingerprint(l.Definition) {
			t.Errorf("%d: %s %s %s", i, got[i].Server, got[i].Tool, got[i].Definition)
		}
	}
	again, _ := shield.FormatLockfile(got)
	if diff := cmp.Diff(string(text), string(again)); diff != "" {
		t.Errorf("written again (-want +got):\n%s", diff)
	}
}

// TestLockfileOfParts has what is pinned beside tools: under one name, each is a line of its own.
func TestLockfileOfParts(t *testing.T) {
	all := []shield.LockedTool{
		locked("fs", "x", `{"name":"x"}`),
		{Server: "fs", Part: shield.PartInstructions, Tool: "instructions",
			Definition: shield.InstructionsDefinition("Use <it> well.")},
		{Server: "fs", Part: shield.PartPrompt, Tool: "x", Definition: json.RawMessage(`{"name":"x"}`)},
		{Server: "fs", Part: shield.PartTemplate, Tool: "x://{a}",
			Definition: json.RawMessage(`{"uriTemplate":"x://{a}"}`)},
	}
	text, leftOut := shield.FormatLockfile(all)
	if len(leftOut) > 0 {
		t.Errorf("left out: %v", leftOut)
	}
	if want := `"part":"instructions","tool":"instructions",`; !strings.Contains(string(text), want) ||
		!strings.Contains(string(text), "Use <it> well.") {
		t.Errorf("no %s in\n%s", want, text)
	}
	got, err := shield.ParseLockfile("l", text)
	if diff := cmp.Diff(all, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// TestPartLabel: whatever tools are called, a word names one thing.
func TestPartLabel(t *testing.T) {
	for _, tt := range []struct{ part, name, want string }{
		{"", "put", "put"}, {"", "a:b", "a:b"}, {"", "instructions", "tool:instructions"},
		{"", "prompt:x", "tool:prompt:x"},
		{"", "template:", "tool:template:"}, {"", "tool:x", "tool:tool:x"}, {"", "prompt", "prompt"},
		{shield.PartPrompt, "x", "prompt:x"}, {shield.PartTemplate, "x://{a}", "template:x://{a}"},
		{shield.PartInstructions, "instructions", "instructions"},
	} {
		if got := shield.PinLabel(tt.part, tt.name); got != tt.want {
			t.Errorf("%q %q is %q, want %q", tt.part, tt.name, got, tt.want)
		}
	}
}

// unhashed leaves the hashes of a lockfile out.
func unhashed(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		before, rest, ok := strings.Cut(line, `"hash":"`)
		if _, after, hashed := strings.Cut(rest, `"`); ok && hashed {
			line = before + after
		}
		b.WriteString(line)
	}
	return b.String()
}

func TestLockfileMistakes(t *testing.T) {
	const head = "{\"drawbridge.lock\":1}\n"
	good, _ := shield.FormatLockfile([]shield.LockedTool{locked("fs", "z", `{"name":"z"}`)})
	line := strings.TrimPrefix(string(good), head)
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", `l:1: a lockfile begins with {"drawbridge.lock":1}`},
		{"another file", `{"lockfileVersion":3}`, `l:1: a lockfile begins with {"drawbridge.lock":1}`},
		{"newer", `{"drawbridge.lock":2}`, `l:1: its version is 2, and this Drawbridge reads 1: update Drawbridge`},
		{"an empty line", head + "\n", `l:2: the line is empty`},
		{"a merge", head + line + "<<<<<<< HEAD\n", `l:3: this is a conflict of an unfinished merge`},
		{"not JSON", head + "fs z\n",
			`l:2: not a line of a lockfile: invalid character 's' in literal false (expecting 'a')`},
		{"two objects", head + strings.TrimSuffix(line, "\n") + line,
			`l:2: not a line of a lockfile: text follows the object`},
		{"a member too many", head + strings.Replace(line, `"tool"`, `"x":1,"tool"`, 1),
			`l:2: not a line of a lockfile: json: unknown field "x"`},
		{"no server", head + strings.Replace(line, `"fs"`, `"f s"`, 1), `l:2: "f s" is not the name of a server`},
		{"no tool", head + strings.Replace(line, `"tool":"z",`, ``, 1), `l:2: "tool" or "definition" is missing`},
		{"edited", head + strings.Replace(line, `{"name":"z"}`, `{"name":"z","description":"x"}`, 1),
			`l:2: the hash is not that of the definition, which is sha256:bf90c3f5c1aa60c134f8ade407be02808bf8587211c82c8a7879b0b412a898ab`},
		{"of another tool", head + strings.Replace(line, `"tool":"z"`, `"tool":"y"`, 1),
			`l:2: the definition is of a tool with another name`},
		{"no such part", head + strings.Replace(line, `"tool"`, `"part":"resource","tool"`, 1),
			`l:2: "resource" is not a part that is pinned`},
		{"of another part", head + strings.Replace(line, `"tool"`, `"part":"instructions","tool"`, 1),
			`l:2: the definition is of a tool with another name`},
		{"twice", head + line + line, `l:3: fs z is on line 2 already`},
	} {
		got, err := shield.ParseLockfile("l", []byte(tt.text))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
		if got != nil {
			t.Errorf("%s: it returns tools all the same", tt.name)
		}
	}
}

func FuzzReadLock(f *testing.F) {
	text, _ := shield.FormatLockfile([]shield.LockedTool{locked("fs", "z", `{"name":"z"}`),
		locked("b", "\u202e", `{"name":"\u202e","x":[1e400]}`)})
	f.Add(text)
	f.Add([]byte("{\"drawbridge.lock\":1}\n{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		tools, err := shield.ParseLockfile("l", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "l:") {
				t.Errorf("%v does not say where", err)
			}
			return
		}
		written, leftOut := shield.FormatLockfile(tools)
		again, err := shield.ParseLockfile("l", written)
		if err != nil || len(again)+len(leftOut) != len(tools) {
			t.Fatalf("%v: %d of %d tools came back", err, len(again), len(tools))
		}
	})
}
