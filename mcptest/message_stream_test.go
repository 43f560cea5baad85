package mcptest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/google/go-cmp/cmp"
)

// talk writes lines to a server's stdin, closes it, and gives all that came back and the exit code.
func talk(t *testing.T, server []string, lines ...string) (out []string, exit int) {
	t.Helper()
	command, args, env := mcptest.ServerCommand(t, server[0], server[1:]...)
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	said, err := cmd.Output()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	if text := strings.TrimSuffix(string(said), "\n"); text != "" {
		out = strings.Split(text, "\n")
	}
	return out, cmd.ProcessState.ExitCode()
}

const (
	hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	probe = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	list  = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	echo  = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}`

	welcome = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"mcptest","version":"1.0.0"}}}`
	hi      = `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"hi"}]}}`
)

func TestRawServers(t *testing.T) {
	for _, tt := range []struct {
		server []string
		in     []string
		want   []string
		exit   int
	}{
		{[]string{"legacy"}, []string{hello, echo}, []string{welcome, hi}, 0},
		{[]string{"legacy"}, []string{probe},
			[]string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: server/discover"}}`},
			0},
		{[]string{"silent-discover"}, []string{probe, hello, echo}, []string{welcome, hi}, 0},
		{[]string{"exit-discover"}, []string{probe, hello}, nil, 1},
		{[]string{"string-id"}, []string{echo}, []string{strings.Replace(hi, `"id":3`, `"id":"3"`, 1)}, 0},
		{[]string{"slow-start", "1"}, []string{echo}, []string{hi}, 0},
		{[]string{"flood", "2"}, []string{`{"method":"notifications/initialized"}`, echo}, []string{
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"line 0"}}`,
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"line 1"}}`,
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
			hi}, 0},
		{[]string{"huge-line", "10"}, []string{echo}, []string{strings.Replace(hi, "hi", "xxxxxxxxxx", 1)}, 0},
		{[]string{"many-tools", "3", "2"},
			[]string{list, `{"id":4,"method":"tools/list","params":{"cursor":"from 2"}}`}, []string{
				`{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"tool_0000","description":"Tool number 0.","inputSchema":{"type":"object"}},{"name":"tool_0001","description":"Tool number 1.","inputSchema":{"type":"object"}}],"nextCursor":"from 2"}}`,
				`{"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"tool_0002","description":"Tool number 2.","inputSchema":{"type":"object"}}]}}`}, 0},
		{[]string{"endless-cursor"}, []string{list},
			[]string{`{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"tool_1","inputSchema":{"type":"object"}}],"nextCursor":"page 1"}}`}, 0},
		{[]string{"repeat-cursor"}, []string{list},
			[]string{`{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"echo","description":"Says the text again.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}],"nextCursor":"again"}}`}, 0},
		{[]string{"hang"}, []string{probe, hello, `{"id":1,"method":"ping"}`}, nil, 0},
		{[]string{"hang-call"}, []string{echo, hello}, []string{welcome}, 0},
		{[]string{"crash-on-call"}, []string{hello, echo, list}, []string{welcome}, 3},
		{[]string{"exit-at-once"}, nil, nil, 1},
	} {
		t.Run(strings.Join(tt.server, " "), func(t *testing.T) {
			got, exit := talk(t, tt.server, tt.in...)
			if d := cmp.Diff(tt.want, got); d != "" || exit != tt.exit {
				t.Errorf("exit code %d, want %d; %s", exit, tt.exit, d)
			}
		})
	}
}

// A name that is not there is said to be wrong, in whatever way it comes.
func TestUnknownServer(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), mcptest.ServerVariable+"=nobody")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 2 || string(out) != "mcptest: unknown server \"nobody\"\n" {
		t.Errorf("exit code %d, %s", code, out)
	}
}

func TestServersAreDescribed(t *testing.T) {
	names := map[string]bool{}
	for _, line := range mcptest.DescribeServers() {
		name := strings.Fields(line)[0]
		if names[name] {
			t.Errorf("%s is there twice", name)
		}
		names[name] = true
		if len(strings.Fields(line)) < 3 {
			t.Errorf("%q says nothing", line)
		}
	}
}

func TestRow(t *testing.T) {
	command, _, _ := mcptest.ServerCommand(t, "many-tools")
	want := `{"args":["3"],"command":"` + command +
		`","env":{"GORACE":"atexit_sleep_ms=0","MCPTEST_SERVER":"many-tools"}}`
	if got := string(mcptest.ServerRow(t, "many-tools", "3")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBadSchema(t *testing.T) {
	got, _ := talk(t, []string{"bad-schema"}, list, `{"id":3,"method":"tools/call","params":{"name":"no_schema"}}`)
	if len(got) != 2 {
		t.Fatalf("got %q", got)
	}
	tools := 0
	for range rawjson.Elements(rawjson.Get([]byte(got[0]), "result", "tools")) {
		tools++
	}
	if tools < 10 || got[1] != strings.Replace(hi, "hi", "no_schema", 1) {
		t.Errorf("%d tools, then %s", tools, got[1])
	}
}

// The script's bytes go out as they are, and what came in is in the log, as it was.
func TestRaw(t *testing.T) {
	script := mcptest.WriteScript(t, `{
		"tools/list": {"tools":[{"name":"odd","inputSchema":{},"x":9007199254740993}]},
		"tools/call odd": {"content":[{"type":"hologram","data":"YQ"}],"big":1e400,"empty":"","zero":0,"no":false,"none":null,"esc":"\u00e9"},
		"tools/call mirror": "$params",
		"tools/call fail": {"$error":{"code":-1,"message":"no","data":{"x":0}}},
		"tools/call asks": {"$before":[{"jsonrpc":"2.0","method":"note","params":{"n":1.0}}],"$ask":{"jsonrpc":"2.0","id":"q","method":"roots/list"},"$result":{"done":true}},
		"tools/call hang": null,
		"resources/read test://a": {"contents":[]}
	}`)
	heard := filepath.Join(t.TempDir(), "heard")
	in := []string{
		list,
		`{"id":3,"method":"tools/call","params":{"name":"odd"}}`,
		`{"id":4,"method":"tools/call","params":{"name":"mirror","arguments":{"n":9007199254740993, "s":"\u00e9"}}}`,
		`{"id":5,"method":"tools/call","params":{"name":"fail"}}`,
		`{"id":6,"method":"tools/call","params":{"name":"asks"}}`,
		`{"id":7,"method":"tools/call","params":{"name":"hang"}}`,
		`{"id":"q","result":{"roots":[]}}`,
		`{"id":8,"method":"resources/read","params":{"uri":"test://a"}}`,
		`{"id":9,"method":"ping"}`,
	}
	got, _ := talk(t, []string{"raw", script, heard}, in...)
	want := []string{
		`{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"odd","inputSchema":{},"x":9007199254740993}]}}`,
		`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"hologram","data":"YQ"}],"big":1e400,"empty":"","zero":0,"no":false,"none":null,"esc":"\u00e9"}}`,
		`{"jsonrpc":"2.0","id":4,"result":{"content":[],"params":{"name":"mirror","arguments":{"n":9007199254740993, "s":"\u00e9"}}}}`,
		`{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"no","data":{"x":0}}}`,
		`{"jsonrpc":"2.0","method":"note","params":{"n":1.0}}`,
		`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`,
		`{"jsonrpc":"2.0","id":6,"result":{"done":true}}`,
		`{"jsonrpc":"2.0","id":8,"result":{"contents":[]}}`,
		`{"jsonrpc":"2.0","id":9,"result":{}}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	log, err := os.ReadFile(heard)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Join(in, "\n")+"\n", string(log)); d != "" {
		t.Errorf("the log: %s", d)
	}
}

// Every message of junk arrives, none alone.
func TestJunk(t *testing.T) {
	var in []string
	for range 7 {
		in = append(in, echo)
	}
	got, _ := talk(t, []string{"junk"}, in...)
	all := strings.Join(got, "\n")
	bare := strings.Replace(hi, `"jsonrpc":"2.0",`, "", 1)
	if n := strings.Count(all, hi) + strings.Count(all, bare); n != 7 {
		t.Errorf("%d answers in\n%s", n, all)
	}
	for _, want := range []string{"INFO", "\xef\xbb\xbf{", "}{", "\r", "\n" + bare, `"nobody"`,
		"unheard_of", "\xff\xfe"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}
