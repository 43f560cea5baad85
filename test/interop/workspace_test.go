//go:build peers

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A desk is a home with a workspace, and the program in it.
type desk struct {
	t    *testing.T
	home string
}

// runs runs a command of the program, and returns its standard output.
func (d desk) runs(args ...string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(limit(d.t, 5*time.Minute), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, drawbridge, commandLine(d.home, args...)...)
	cmd.Dir, cmd.Env = d.home, homely(d.home)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		d.t.Fatalf("%v: %v\n%s%s", args, err, out.String(), log.String())
	}
	return out.String()
}

// token adds a client with scopes, and returns its token.
func (d desk) token(name string, scopes ...string) string {
	d.t.Helper()
	args := []string{"client", "add", name, "--json"}
	for _, s := range scopes {
		args = append(args, "--scope", s)
	}
	var added struct{ Token string }
	decode(d.t, json.RawMessage(d.runs(args...)), &added)
	return added.Token
}

// TestInspectorAndWorkspace is the worked example of the workspace with an outside client: it reads three pages, is
// refused a write with too few scopes, and writes with enough; a source changes, and the person accepts the page.
func TestInspectorAndWorkspace(t *testing.T) {
	d := desk{t, t.TempDir()}
	if err := configure(d.home, []row{}); err != nil {
		t.Fatal(err)
	}
	d.runs("workspace", "init")
	reader, writer := d.token("reader", "workspace:read"), d.token("writer", "workspace:read", "workspace:propose")
	for _, title := range []string{"One", "Two", "Three"} {
		d.runs("tools", "call", "page_create", "title="+title, "text=A fact.")
	}
	cmd := exec.Command(drawbridge, commandLine(d.home, "serve", "--http", "127.0.0.1:0")...)
	cmd.Dir, cmd.Env = d.home, homely(d.home)
	url := served(t, cmd)
	call := func(token, tool, arguments string) (out []byte, err error) {
		out, log, err := tryInspector(t, []string{"--server-url", url, "--transport", "http", "--protocol-era", "modern",
			"--header", "Authorization: Bearer " + token}, nil, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", arguments)
		return append(out, log...), err
	}
	for _, slug := range []string{"one", "two", "three"} {
		for _, token := range []string{reader, writer} {
			if out, err := call(token, "page_read", `{"page":"`+slug+`"}`); err != nil || !strings.Contains(string(out), "A fact.") {
				t.Fatalf("read %s: %v\n%s", slug, err, out)
			}
		}
	}
	const page = `{"title":"Summary","text":"Three facts."}`
	if out, err := call(reader, "page_create", page); err == nil && !strings.Contains(string(out), "error") {
		t.Errorf("a client without the scope has written: %s", out)
	}
	if out, err := call(writer, "page_create", page); err != nil || !strings.Contains(string(out), "candidate") {
		t.Fatalf("write: %v\n%s", err, out)
	}
	var summary struct {
		Page  struct{ Revision, Origin, Lifecycle string }
		Links struct{ Sources []string }
	}
	for _, tool := range []string{"page_read", "page_links"} {
		result := struct{ StructuredContent any }{&summary}
		decode(t, json.RawMessage(d.runs("tools", "call", tool, "page=summary", "--json")), &result)
	}
	if summary.Page.Origin != "agent-produced" || summary.Page.Lifecycle != "candidate" || len(summary.Links.Sources) != 3 {
		t.Errorf("the page is %+v, its sources are %v", summary.Page, summary.Links.Sources)
	}
	d.runs("tools", "call", "page_update", "page=two", "slot=b1", "text=Another fact.")
	if list := d.runs("review", "list"); !strings.Contains(list, summary.Page.Revision) {
		t.Errorf("what waits is:\n%s", list)
	}
	d.runs("review", "accept", summary.Page.Revision, "--yes")
	if show := d.runs("workspace", "show", "summary"); !strings.Contains(show, "canonical") {
		t.Errorf("the page is\n%s", show)
	}
}
