//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// everyDesk returns a desk with one server, "every", and a client that called it through the hub.
func everyDesk(t *testing.T) (*desk, *talker) {
	t.Helper()
	d := newDesk(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d.write(".config/drawbridge/mcp.json", fmt.Sprintf(`{"servers": {"every": {"command": %q, "env": {%q: "everything"}}}}`,
		self, mcptest.ServerVariable))
	client := d.talk()
	if answer := client.ask(2, "tools/call", `{"name":"every__echo","arguments":{"text":"hello"}}`); !strings.Contains(
		answer, "hello") {
		t.Fatal(answer)
	}
	return d, client
}

// TestCommandsUseTheHub runs commands on tools while a hub runs: its servers answer, and no other is started.
func TestCommandsUseTheHub(t *testing.T) {
	d, _ := everyDesk(t)
	before := d.state()
	for _, test := range []struct {
		code int
		args []string
		want string
	}{
		{0, []string{"tools", "list"}, "every__echo "},
		{0, []string{"tools", "list", "--json"}, `"name":"every__echo"`},
		{0, []string{"tools", "show", "every__echo"}, `tool "echo" of server "every"`},
		{0, []string{"tools", "call", "every__echo", "text=hi"}, "hi\n"},
		{0, []string{"tools", "call", "every__add", `{"a":2,"b":3}`}, "5"},
		{1, []string{"tools", "call", "every__fail"}, ""},
		{1, []string{"tools", "call", "every__nope"}, "unknown tool every__nope (drawbridge tools list)"},
		{1, []string{"tools", "call", "every__nope", "a=1"}, "unknown tool every__nope (drawbridge tools list)"},
		{2, []string{"tools", "call", "every__add", "a=two", "b=3"}, `argument "a": "two" is no`},
	} {
		out, stderr := d.run(test.code, test.args...)
		if !strings.Contains(out+stderr, test.want) {
			t.Errorf("drawbridge %s printed %q, %q", strings.Join(test.args, " "), out, stderr)
		}
	}
	after := d.state()
	if len(after.Clients) != 1 || len(after.Servers) != 1 || fmt.Sprint(after.Servers[0].PIDs) != fmt.Sprint(
		before.Servers[0].PIDs) {
		t.Errorf("the hub ran %+v before and %+v after", before.Servers, after.Servers)
	}
	d.run(0, "tools", "call", "every__echo", "text=own", "--own")
	if out, _ := d.run(0, "mcp", "list"); !strings.Contains(out, "every  ready") {
		t.Errorf("after a process of the command's own the store does not have the hub's status:\n%s", out)
	}
}
