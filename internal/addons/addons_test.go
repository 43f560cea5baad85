//go:build unix

package addons

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"go.uber.org/goleak"
)

const roleVariable = "ADDONS_TEST_ROLE"

// The test binary is also the program of the addons: the variable says what it does.
func TestMain(m *testing.M) {
	process.RunIfReaper()
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
		return
	}
	goleak.VerifyTestMain(m)
}

func play(role string) {
	answers := map[string]string{
		"upper":    `{"arguments":{"path":"OTHER"}}`,
		"block":    `{"block":"not\u001b[31m today"}`,
		"silent":   `{}`,
		"null":     `{"block":null}`,
		"liar":     `{"block":"no","arguments":{"a":1}}`,
		"list":     `{"arguments":[1]}`,
		"text":     `"text"`,
		"result":   `{"result":{"content":[]}}`,
		"env":      `{"env":{"A":"1","B":"two words"}}`,
		"bad-env":  `{"env":{"A=B":"1"}}`,
		"tool":     `{"text":"hi","isError":true}`,
		"contents": `{"content":[{"type":"text","text":"x"}]}`,
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var request struct {
			ID     json.RawMessage
			Method string
			Params Call
		}
		if json.Unmarshal(lines.Bytes(), &request) != nil {
			os.Exit(9)
		}
		switch {
		case role == "log":
			fmt.Fprintln(os.Stderr, request.Method, request.Params.Tool)
		case request.ID == nil:
		case role == "hang":
		case role == "crash":
			fmt.Fprintln(os.Stderr, "Traceback: boom")
			os.Exit(3)
		case role == "garbage":
			fmt.Println("DEBUG started")
		case role == "error":
			fmt.Printf(`{"id":%s,"error":{"code":1,"message":"no database"}}`+"\n", request.ID)
		case role == "echo":
			fmt.Printf(`{"id":%s,"result":{"arguments":%s}}`+"\n", request.ID, request.Params.Arguments)
		default:
			fmt.Printf(`{"id":%s,"result":%s}`+"\n", request.ID, answers[role])
		}
	}
}

// newAddon returns an addon of which the test binary is the program.
func newAddon(t *testing.T, role, manifest string) *Addon {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := writeAddon(t, "sample", fmt.Sprintf("exec = [%q]\n", self)+manifest)
	a, err := New(Read(dir, false), append(os.Environ(), roleVariable+"="+role), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return a
}

// writeAddon writes the manifest of an addon and returns its directory.
func writeAddon(t *testing.T, id, manifest string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("id = %q\nversion = \"1\"\n", id) + manifest
	if err := os.WriteFile(filepath.Join(dir, ManifestName), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func handler(event, kind string) string {
	return fmt.Sprintf("[[handler]]\nevent = %q\nkind = %q\n", event, kind)
}

var readCall = Call{Tool: "read", Arguments: json.RawMessage(`{"path":"a"}`)}

func TestBeforeTool(t *testing.T) {
	transform, gate := handler(ToolBefore, Transform), handler(ToolBefore, Block)
	for _, c := range []struct{ role, manifest, arguments, blocked, err string }{
		{"upper", transform, `{"path":"OTHER"}`, "", ""},
		{"silent", transform, "", "", ""},
		{"silent", gate, "", "", ""},
		{"null", gate, "", "", ""},
		{"block", gate, "", `not\u001b[31m today`, ""},
		{"echo", transform + handler(ToolBefore, Transform), `{"path":"a"}`, "", ""},
		{"liar", gate, "", "", `a handler of the kind gate for tool:before must not answer with "arguments"`},
		{"block", transform, "", "", `a handler of the kind transform for tool:before must not answer with "block"`},
		{"list", transform, "", "", `"arguments" must be an object`},
		{"text", transform, "", "", "its answer is not an object"},
		{"error", gate, "", "", "it answered with the error no database"},
		{"crash", gate, "", "", "Traceback: boom"},
		{"garbage", gate, "", "", "its program wrote a line that is not an answer: DEBUG started"},
		{"hang", "timeout = \"50ms\"\n" + gate, "", "", "no answer within 50ms"},
		{"hang", "timeout = \"50ms\"\non-error = \"continue\"\n" + gate, "", "", ""},
		{"crash", "[[gate]]\nevent = \"tool:before\"\nmatch-tool = \"re*\"\nreason = \"Never.\"\n", "", "Never.", ""},
		{"crash", gate + "match-tool = \"write\"\n", "", "", ""},
		{"log", handler(ToolBefore, Observe), "", "", ""},
	} {
		t.Run(c.role, func(t *testing.T) {
			a := newAddon(t, c.role, c.manifest)
			arguments, blocked, err := a.BeforeTool(t.Context(), readCall)
			if string(arguments) != c.arguments || blocked != c.blocked || (err == nil) != (c.err == "") ||
				err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s %s:\n%s, %q, %v\nwant %s, %q, %s", c.role, c.manifest, arguments, blocked, err, c.arguments,
					c.blocked, c.err)
			}
		})
	}
}

func TestAfterTool(t *testing.T) {
	a := newAddon(t, "result", handler(ToolAfter, Transform))
	done := Call{Tool: "read", Result: json.RawMessage(`{"content":[1]}`)}
	if result, err := a.AfterTool(t.Context(), done); err != nil || string(result) != `{"content":[]}` {
		t.Errorf("%s, %v", result, err)
	}
	// An error of a call cannot be turned into a result.
	if result, err := a.AfterTool(t.Context(), Call{Tool: "read", Error: "refused"}); err != nil || result != nil {
		t.Errorf("%s, %v", result, err)
	}
}

func TestShellEnv(t *testing.T) {
	a := newAddon(t, "env", handler(ShellEnv, Transform))
	env, err := a.ShellEnv(t.Context(), ShellCommand{Command: "make"})
	if err != nil || strings.Join(env, "|") != "A=1|B=two words" {
		t.Errorf("%q, %v", env, err)
	}
	_, err = newAddon(t, "bad-env", handler(ShellEnv, Transform)).ShellEnv(t.Context(), ShellCommand{})
	if err == nil || err.Error() != `"A=B" is not the name of a variable` {
		t.Error(err)
	}
}

func TestCallTool(t *testing.T) {
	for role, want := range map[string]string{
		"tool":     `{"content":[{"text":"hi","type":"text"}],"isError":true}`,
		"contents": `{"content":[{"type":"text","text":"x"}]}`,
	} {
		result, err := newAddon(t, role, "").CallTool(t.Context(), Call{Tool: "note"})
		if err != nil || string(result) != want {
			t.Errorf("%s: %s, %v", role, result, err)
		}
	}
	if _, err := newAddon(t, "silent", "").CallTool(t.Context(), Call{}); err == nil {
		t.Error("an answer without content passed")
	}
}

// TestAFailedProgramIsStartedAgain checks the pauses between starts, with a clock of its own.
func TestAFailedProgramIsStartedAgain(t *testing.T) {
	a := newAddon(t, "crash", handler(ToolBefore, Block))
	clock := time.Now()
	a.now = func() time.Time { return clock }
	for _, want := range []string{"boom", "it failed 1 times; it is started again in 100ms"} {
		if _, _, err := a.BeforeTool(t.Context(), readCall); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	clock = clock.Add(100 * time.Millisecond)
	for _, want := range []string{"boom", "it failed 2 times; it is started again in 200ms"} {
		if _, _, err := a.BeforeTool(t.Context(), readCall); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// TestACallerWhoLeavesHarmsNoAddon cancels a call; the program goes on.
func TestACallerWhoLeavesHarmsNoAddon(t *testing.T) {
	a := newAddon(t, "hang", "timeout = \"1m\"\n"+handler(SessionStart, Observe)+handler(ToolBefore, Block))
	a.Session(t.Context(), SessionStart, Client{}) // starts the program
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, _, err := a.BeforeTool(ctx, readCall); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if a.current == nil || a.failures != 0 {
		t.Error("the program was ended")
	}
}

func TestObserversAreTold(t *testing.T) {
	a := newAddon(t, "log", handler(SessionStart, Observe)+handler(ToolBefore, Observe))
	a.Session(t.Context(), SessionStart, Client{Name: "x"})
	if _, _, err := a.BeforeTool(t.Context(), readCall); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for line, next := 0, (<-chan struct{})(nil); len(seen) < 2; {
		if next != nil {
			<-next
		}
		var lines []string
		lines, line, next = a.current.process.StderrFrom(line)
		seen = append(seen, lines...)
	}
	if got := strings.Join(seen, "|"); got != "session:start |tool:before read" {
		t.Errorf("%q", got)
	}
}

func TestTry(t *testing.T) {
	var out bytes.Buffer
	a := newAddon(t, "upper", handler(ToolBefore, Transform)+handler("chat:params", Observe))
	if err := a.Try(t.Context(), &out); err != nil || out.String() != `tool:before (transform): {"arguments":{"path":"OTHER"}}`+"\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestManifests(t *testing.T) {
	const head = "id = \"a\"\nversion = \"1\"\nexec = [\"x\"]\n"
	for text, want := range map[string]string{
		head: "",
		head + "[[command]]\nname = \"note\"\nexec = [\"x\"]": "",
		"id = \"\"":                "id must be a letter",
		"id = \"a\"":               "version is missing",
		"id = ":                    "toml: line 1",
		head + "color = 1":         `unknown member "color"`,
		head + "timeout = \"0s\"":  "timeout must be a duration up to 10m0s",
		head + "on-error = \"no\"": "on-error must be block or continue",
		"id = \"a\"\nversion = \"1\"\n" + handler(ToolBefore, Block):                "exec is missing",
		head + handler("tool:never", Block):                                         `handler 1: unknown event "tool:never"`,
		head + handler(ToolAfter, Block):                                            `handler 1: kind "gate": for tool:after it must be observe or transform`,
		head + handler(ShellEnv, Transform) + "match-tool = \"x\"":                  "handler 1: match-tool is for tool:before and tool:after",
		head + handler(ToolBefore, Block) + "match-tool = \"[\"":                    `handler 1: match-tool "[" is not a valid glob`,
		head + "[[gate]]\nevent = \"tool:after\"":                                   "gate 1: event must be tool:before",
		head + "[[gate]]\nevent = \"tool:before\"\nmatch-tool = \"x\"":              "gate 1: reason is missing",
		head + "[[tool]]\nname = \"x y\"":                                           "tool 1: name must be a letter",
		head + "[[tool]]\nname = \"x\"":                                             `tool "x": description is missing`,
		head + "[[tool]]\nname = \"x\"\ndescription = \"d\"\ninput-schema = \"[]\"": `tool "x": input-schema must be a JSON object`,
		head + "[[tool]]\nname = \"x\"\ndescription = \"d\"\ninput-schema = \"{}\"": `tool "x": input-schema must have "type": "object"`,
		head + strings.Repeat("[[tool]]\nname = \"x_y\"\ndescription = \"d\"\n", 2): `tool "x_y": another tool has the same name`,
		head + "[[command]]\nname = \"quit\"\nexec = [\"x\"]":                       `command "quit": the name is taken`,
	} {
		_, err := ParseManifest(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v; want %s", text, err, want)
		}
	}
}

// TestProjectsAddons checks that an addon of a project runs only with the files that were approved.
func TestProjectsAddons(t *testing.T) {
	dir := writeAddon(t, "sample", "exec = [\"./run\"]\n"+handler(ToolBefore, Block))
	first := Read(dir, true)
	if first.Err != nil || len(first.Digest) != 64 {
		t.Fatal(first)
	}
	if err := os.WriteFile(filepath.Join(dir, "run"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if again := Read(dir, true); again.Digest == first.Digest {
		t.Error("a further file leaves the digest as it was")
	}
	a, err := New(first, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = a.BeforeTool(t.Context(), readCall); err == nil || !strings.Contains(err.Error(), "changed since they were approved") {
		t.Error(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if got := Read(dir, true); got.Err == nil || !strings.Contains(got.Err.Error(), "link is not a regular file") {
		t.Error(got.Err)
	}
}

func TestFind(t *testing.T) {
	dir := writeAddon(t, "one", "")
	parent := filepath.Dir(dir)
	for name, text := range map[string]string{"two": "id = \"other\"\nversion = \"1\"", "three": "x"} {
		if err := os.MkdirAll(filepath.Join(parent, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(parent, name, ManifestName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Find(parent, false)
	if err != nil || len(found) != 3 || found[0].Err != nil || found[1].Err == nil || found[2].Err == nil ||
		!strings.Contains(found[2].Err.Error(), `the id is "other", and the directory is named "two"`) {
		t.Errorf("%+v, %v", found, err)
	}
	if got := Read(parent, false); got.Err == nil || got.Err.Error() != parent+" has no manifest.toml; docs/addons.md shows one" {
		t.Error(got.Err)
	}
	if _, err := Find(filepath.Join(dir, ManifestName), true); err == nil {
		t.Error("a file was read as a directory")
	}
	many := t.TempDir()
	for i := range maxAddons + 1 {
		if err := os.Mkdir(filepath.Join(many, fmt.Sprintf("a%d", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := Find(many, true); err == nil || len(found) != maxAddons {
		t.Errorf("%d addons, %v", len(found), err)
	}
	if found, err := Find(filepath.Join(parent, "none"), false); err != nil || found != nil {
		t.Errorf("%v, %v", found, err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := Read(dir, false); got.Err == nil || !strings.Contains(got.Err.Error(), "can be changed by every user") {
		t.Error(got.Err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add("id = \"a\"\nversion = \"1\"\nexec = [\"x\"]\n" + handler(ToolBefore, Block))
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := ParseManifest(text); err == nil && (!isName(m.ID) || m.Version == "") {
			t.Errorf("%+v", m)
		}
	})
}
