package tui

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
		Dir: dir,
		Commands: []Command{{Name: "new", Summary: "begins another session", Run: func(context.Context, string) (Output, error) {
			return Output{Session: second, Text: "A new session begins."}, nil
		}}},
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

// TestSecret asks for a secret: the screen, the input history and the conversation do not have it.
func TestSecret(t *testing.T) {
	history := filepath.Join(t.TempDir(), "prompts")
	taken := make(chan string, 2)
	asker, providers := NewAsker(), []string{"anthropic", "openai"}
	x := open(t, 80, 24, Options{Session: newSession(t, &script{}, nil), HistoryFile: history, Asker: asker,
		Commands: []Command{{Name: "login", Private: func(args string) bool { return args != "anthropic" }, Run: func(ctx context.Context, _ string) (Output, error) {
			question := "The key of " + providers[0]
			providers = providers[1:]
			secret, err := asker.Ask(ctx, CommandQuestion{Command: "/login", Kind: ReplySecret, Question: question})
			taken <- secret
			return Output{Text: "It is done."}, err
		}}}})
	x.press("/login sk-typed-too-early\r")
	x.shows("The key of anthropic")
	x.pass(time.Second)
	x.press("sk-hidden")
	x.press("\x1b[200~-and-pasted\x1b[201~\r")
	x.shows("It is done.")
	if got := <-taken; got != "sk-hidden-and-pasted" {
		t.Errorf("the secret is %q", got)
	}
	x.press("/login anthropic\r")
	x.shows("The key of openai")
	x.pass(time.Second)
	x.press("sk-again\x1b")
	text := x.shows("no reply")
	if got := <-taken; got != "" {
		t.Errorf("the secret is %q", got)
	}
	raw, err := os.ReadFile(history)
	if diff := cmp.Diff("\"/login\"\n\"/login anthropic\"\n", string(raw)); err != nil || diff != "" {
		t.Errorf("%v, the input history (-want +got):\n%s", err, diff)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, secret := range []string{"hidden", "pasted", "again"} {
		if strings.Contains(text, secret) || strings.Contains(x.raw.String(), secret) {
			t.Errorf("the screen shows %q", secret)
		}
	}
}

// TestMoreCommands finds commands that come later, in the palette, in the help and by name.
func TestMoreCommands(t *testing.T) {
	x := open(t, 100, 40, Options{Session: newSession(t, &script{answers: []answer{says("I review it.")}}, nil),
		MoreCommands: func(context.Context) []Command {
			return []Command{
				{Name: "docs:review", Summary: "of the server docs", Usage: "key=value", Run: func(_ context.Context, args string) (Output, error) {
					return Output{Prompt: newPrompt("please " + args)}, nil
				}},
				{Name: "quit", Summary: "does not replace ours"},
			}
		}})
	x.press("/docs")
	x.shows("/docs:review key=value")
	x.press("\x15\x10review")
	x.shows("> /docs:review key=value")
	x.press("\x1b/help\r")
	text := x.shows("/docs:review key=value", "of the server docs")
	if strings.Contains(text, "does not replace ours") {
		t.Errorf("a command is replaced:\n%s", text)
	}
	x.press("/docs:review a=b\r")
	x.shows("I review it.", "!working")
	x.press("/docs:other\r")
	x.shows("unknown command: /docs:other")
}

// TestLateCommandsKeepArguments completes an argument before the commands that come later are there: these do not close
// the list of arguments.
func TestLateCommandsKeepArguments(t *testing.T) {
	arrive := make(chan struct{})
	x := open(t, 100, 40, Options{Session: newSession(t, &script{}, nil),
		Commands: []Command{{Name: "login", Usage: "[provider]", Run: func(context.Context, string) (Output, error) { return Output{}, nil },
			Complete: func(context.Context, string) []string { return []string{"anthropic"} }}},
		MoreCommands: func(context.Context) []Command {
			<-arrive
			return []Command{{Name: "docs:review", Run: func(context.Context, string) (Output, error) { return Output{}, nil }}}
		}})
	x.press("/login an\t")
	x.shows("> anthropic")
	close(arrive)
	x.press("\x1b[B") // the list is still there: the key moves in it
	x.shows("> anthropic")
	x.press("\x15/docs")
	x.shows("/docs:review")
}

// TestAWholeNameIsFirst: a name that is typed whole is run, although a command before it has an alias that begins so.
func TestAWholeNameIsFirst(t *testing.T) {
	x := open(t, 80, 24, Options{Session: newSession(t, &script{}, nil), Commands: []Command{
		{Name: "again", Usage: "[ID]", Aliases: []string{"jobs-all"},
			Run: func(context.Context, string) (Output, error) { return Output{Text: "Resumed."}, nil }},
		{Name: "jobs", Run: func(context.Context, string) (Output, error) { return Output{Text: "The jobs."}, nil }}}})
	x.press("/jobs")
	x.shows("> /jobs", "/jobs-all [ID]")
	x.press("\r")
	x.shows("The jobs.")
}

// TestLeftSession tells which session was left.
func TestLeftSession(t *testing.T) {
	proceed := make(chan struct{})
	left := make(chan *agent.Session, 1)
	first := newSession(t, &script{answers: []answer{streams("One ", "two.", proceed)}}, nil)
	second := newSession(t, &script{answers: []answer{says("From the second.")}}, nil)
	shown := &atomic.Pointer[agent.Session]{}
	x := open(t, 80, 24, Options{Session: first, Shown: shown, Commands: []Command{{Name: "resume",
		Run: func(context.Context, string) (Output, error) {
			return Output{Session: second, Text: "Resumed.", Left: func(s *agent.Session) { left <- s }}, nil
		}}}})
	x.press("hello\r")
	x.shows("working", "One")
	x.press("/resume\r")
	x.shows("a run has not ended yet")
	if got := <-left; got != second || shown.Load() != first {
		t.Error("the refused session was not left")
	}
	close(proceed)
	x.shows("One two.", "!working")
	x.press("/resume\r")
	x.shows("Resumed.")
	if got := <-left; got != first || shown.Load() != second {
		t.Error("the first session was not left")
	}
	x.press("hello\r")
	x.shows("From the second.")
}

// TestShare writes the conversation without secrets.
func TestShare(t *testing.T) {
	dir := t.TempDir()
	x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{says("It is SECRET."), says("It is UNREADABLE.")}}, nil), Dir: dir,
		Redact: func(_ context.Context, text string) (string, error) {
			if strings.Contains(text, "UNREADABLE") {
				return text, errors.New("the vault is locked")
			}
			return strings.ReplaceAll(text, "SECRET", "[redacted]"), nil
		}})
	x.press("one\r")
	x.shows("It is SECRET.", "!working")
	x.press("/share out.md\r")
	x.shows("Nothing was sent.")
	raw, err := os.ReadFile(filepath.Join(dir, "out.md"))
	if diff := cmp.Diff("## Prompt\n\none\n\n## Answer\n\nIt is [redacted].\n\n", string(raw)); err != nil || diff != "" {
		t.Errorf("%v, shared (-want +got):\n%s", err, diff)
	}
	x.press("two\r")
	x.shows("It is UNREADABLE.", "!working")
	x.press("/share more.md\r")
	x.shows("nothing was written")
	if _, err := os.Stat(filepath.Join(dir, "more.md")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a text with unknown secrets was written: %v", err)
	}
}
