package tui

import (
	"bytes"
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/google/go-cmp/cmp"
)

func TestParseCommand(t *testing.T) {
	type parsed struct {
		Name, Args string
		OK         bool
	}
	for text, want := range map[string]parsed{
		"/help":             {"help", "", true},
		"/Name my  session": {"name", "my  session", true},
		"/skill:review x":   {"skill:review", "x", true},
		"/mcp-server_a":     {"mcp-server_a", "", true},
		"/?":                {"?", "", true},
		"/name\na":          {"name", "a", true},
		"/":                 {},
		"//":                {},
		"/usr/bin is big":   {},
		"/1":                {},
		"/é":                {},
		"help":              {},
		" /help":            {},
	} {
		name, args, ok := parseCommand(text)
		if diff := cmp.Diff(want, parsed{name, args, ok}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestCommands(t *testing.T) {
	dir := t.TempDir()
	second := newSession(t, &script{answers: []answer{says("From the second session.")}}, nil)
	x := open(t, 100, 60, Options{
		Session: newSession(t, &script{answers: []answer{says("Answer | one."), says("Answer *two*."), says("A summary."),
			says("Answer three.")}}, nil),
		Dir:        dir,
		NewSession: func(context.Context) (*agent.Session, error) { return second, nil },
	})
	for _, s := range []struct{ keys, want string }{
		{"one\r", "Answer | one."},
		{"two\r", "Answer two."},
		{"/help\r", "/summarize-context, /condense, /compact"},
		{"/hotkeys\r", "command palette"},
		{"/name work\r", "The session has the name work."},
		{"/session\r", "(work)"},
		{"/usage\r", "output: 200 tokens"},
		{"/plan\r", "script · plan"},
		{"\x1b[Z", "script · default"},
		{"\x1b[Z", "script · acceptEdits"},
		{"/thinking high\r", "Thinking: high."},
		{"/thinking hard\r", "the levels are off"},
		{"/branch 9\r", "no message with this number"},
		{"/branch 2\r", "continues after message 2"},
		{"/timeline\r", "2 (current)"},
		{"/export out.md\r", "Written to"},
		{"/export out.md\r", "file exists"},
		{"/nothing\r", "unknown command: /nothing"},
		{"/approvals\r", "No question waits."},
		{"/todo\r", "no items"},
		{"/clear\r", "The conversation is empty."},
		{"/compact\r", "too short to be condensed"},
		{"/new\r", "A new session begins."},
		{"hello\r", "From the second session."},
	} {
		x.press(s.keys)
		x.shows(s.want, "!working")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "out.md"))
	if diff := cmp.Diff("## Prompt\n\none\n\n## Answer\n\nAnswer | one.\n\n", string(raw)); err != nil || diff != "" {
		t.Errorf("%v, exported (-want +got):\n%s", err, diff)
	}
	x.press("/quit\r")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

func TestCopy(t *testing.T) {
	x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{says("the **answer**")}}, nil)})
	x.press("/copy\r")
	x.shows("there is no answer yet")
	x.press("one\r")
	x.shows("the answer", "!working")
	x.press("/copy\r")
	want := "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte("the **answer**"))
	x.until("a copy", func(string) bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return bytes.Contains(x.raw.Bytes(), []byte(want))
	})
}

func TestCommandOfComposerReplacesOurs(t *testing.T) {
	x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{says("I review it.")}}, nil),
		Commands: []Command{{Name: "name", Summary: "another", Run: func(context.Context, string) (Output, error) {
			return Output{Prompt: newPrompt("please review")}, nil
		}}}})
	x.press("/name\r")
	text := x.shows("I review it.", "!working")
	if !strings.Contains(text, "> /name") {
		t.Errorf("the command is not shown:\n%s", text)
	}
}
