//go:build unix

package admin_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
)

// TestTR1AnApprovalBindsTheProgram: what a command meant when it was approved is what it means from then on, and only
// as long as the file is byte for byte what it was.
func TestTR1AnApprovalBindsTheProgram(t *testing.T) {
	w := newWorld(t,
		map[string]string{theirFile: `{"mcpServers": {"a": {"command": "tool"}, "later": {"command": "not-there-yet"}}}`})
	run := func(path, text string) {
		t.Helper()
		w.write(path, text)
		if err := os.Chmod(w.path(path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run("one/tool", "first")
	at := func(path string) *admin.Service {
		return admin.New(admin.Options{Environ: []string{"PATH=" + path}, ConfigOptions: config.Options{
			Dir: w.path("project"), Home: w.path("home"), XDGConfig: w.path("home/.config"),
			LookupEnv: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		}})
	}
	w.Service = at(w.path("one"))
	const digest = "SHA-256 a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"
	entries := fine[[]admin.ServerEntry](t)(w.DecidableServers(t.Context()))
	lines := entries[0].ApprovalLines()
	wantDiff(t, "lines", []config.NameValue{{Name: "program", Value: w.path("one/tool")}, {Name: "program digest",
		Value: digest}}, lines[2:4])
	wantDiff(t, "what is not there", []config.NameValue(nil), entries[1].ProgramLines())
	fine[[]admin.Change](t)(w.Approve(t.Context(), entries))
	approved := []string{"a project idle approved", "later project idle approved"}
	wantDiff(t, "approved", approved, w.phases())

	run("two/tool", "second")
	w.Service = at(w.path("two") + ":" + w.path("one"))
	wantDiff(t, "with another PATH", approved, w.phases())

	for _, step := range []struct{ text, why string }{
		{"second", "its program changed since you approved it: program: " + w.path("one/tool") + " → " +
			w.path("two/tool") + "; program digest: " + digest + " → SHA-256 16367aacb67a4a01"},
		{"first", ""},
	} {
		run("one/tool", step.text)
		a := fine[admin.ServerDetail](t)(w.DescribeServer(t.Context(), "a"))
		if !strings.HasPrefix(a.Reason, step.why) || (a.Decision == admin.DecisionApproved) != (step.why == "") {
			t.Errorf("%q: %s, %q", step.text, a.Decision, a.Reason)
		}
	}

	run("one/not-there-yet", "new")
	later := fine[admin.ServerDetail](t)(w.DescribeServer(t.Context(), "later"))
	if !strings.Contains(later.Reason, "its program changed since you approved it: program: added ("+
		w.path("one/not-there-yet")+"); program digest: added (") {
		t.Errorf("%q", later.Reason)
	}
	fine[[]admin.Change](t)(w.Approve(t.Context(), []admin.ServerEntry{later.ServerEntry}))
	wantDiff(t, "approved again", approved, w.phases())
	if err := os.Remove(w.path("one/not-there-yet")); err != nil {
		t.Fatal(err)
	}
	wantDiff(t, "gone again", "later project needs-approval outdated", w.phases()[1])
}

// TestWhatNobodyApprovedIsNotRead: a project's rows name what they like, and hold nobody up before a person decides.
func TestWhatNobodyApprovedIsNotRead(t *testing.T) {
	w := newWorld(t,
		map[string]string{theirFile: `{"mcpServers": {"a": {"command": "tool"}, "huge": {"command": "huge"}}}`})
	for name, size := range map[string]int64{"tool": 5, "huge": 200 << 30} {
		w.write("bin/"+name, "")
		if err := errors.Join(os.Truncate(w.path("bin/"+name), size), os.Chmod(w.path("bin/"+name),
			0o700)); err != nil {
			t.Skip(err) // no such files here
		}
	}
	w.Service = admin.New(admin.Options{Environ: []string{"PATH=" + w.path("bin")}, ConfigOptions: config.Options{
		Dir: w.path("project"), Home: w.path("home"), XDGConfig: w.path("home/.config"),
		LookupEnv: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
	}})
	wantDiff(t, "phases", []string{"a project needs-approval ", "huge project refused "}, w.phases())
	for _, e := range fine[admin.ListResult](t)(w.ListServers(t.Context(), true)).Entries {
		if e.Program != (config.ProgramFile{}) {
			t.Errorf("%s was read: %+v", e.Name, e.Program)
		}
	}
	const why = "is too large to be approved: it has 204800 MiB, and 1024 are allowed"
	for name, ask := range map[string]func() error{
		"approve": func() error { _, err := w.DecidableServers(t.Context(), "huge"); return err },
		"get": func() error {
			d := fine[admin.ServerDetail](t)(w.DescribeServer(t.Context(), "huge"))
			return errors.New(d.Reason)
		},
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	entries := fine[[]admin.ServerEntry](t)(w.DecidableServers(t.Context()))
	if len(entries) != 1 || entries[0].Program.Path != w.path("bin/tool") {
		t.Fatalf("%+v", entries)
	}
	fine[[]admin.Change](t)(w.Approve(t.Context(), entries))
	wantDiff(t, "approved", "a project idle approved", w.phases()[0])

	if err := os.Truncate(w.path("bin/tool"), 200<<30); err != nil {
		t.Fatal(err)
	}
	wantDiff(t, "grown", "a project refused outdated", w.phases()[0])
}
