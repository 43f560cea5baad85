package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

// Options are the options of Run. Only Session is required.
type Options struct {
	// Session is the conversation that is shown. Commands may replace it by another one; see [Output].
	Session *agent.Session
	// Shown, if it is not nil, always holds the session that is shown.
	Shown *atomic.Pointer[agent.Session]
	// Terminal is where input comes from and output goes to.
	Terminal Terminal
	// Commands are further commands. One with the name of a built-in command replaces it.
	Commands []Command
	// MoreCommands returns commands that may change while the session is shown, such as those of servers. They do not
	// replace others. Nil means that there are none.
	MoreCommands func(ctx context.Context) []Command
	// Dir is the directory that "@path" is completed in; empty means the working directory.
	Dir string
	// HistoryFile keeps the prompts for the next start; empty means that they are forgotten.
	HistoryFile string
	// Asker asks the questions of commands and shows texts from outside of the session; nil means that there are none.
	Asker *Asker
	// First is a prompt that is sent at the start; empty means that the person begins.
	First string
	// Redact removes what looks like a secret from the text that /share writes, which writes nothing after an error; nil
	// means that there is no such command.
	Redact func(ctx context.Context, text string) (string, error)
	// Prompt makes the message of a prompt, such as one with the images that it names; nil means a message of one text.
	Prompt func(ctx context.Context, text string) ([]drawbridge.MessagePart, error)
	// Now returns the time; nil means the system's clock.
	Now func() time.Time
}

// A Terminal describes the person's terminal. The zero value means the standard input and output of the process.
type Terminal struct {
	In  io.Reader
	Out io.Writer
	// Env are the environment variables, of which TERM and NO_COLOR count here; nil means those of the process.
	Env []string
	// Width and Height are the size; 0 means that the terminal is asked. Plain output has 80 columns without a width.
	Width, Height int
	// Plain asks for lines without redrawing, boxes and colours. It is also chosen if TERM is "dumb".
	Plain bool
	// NoColour asks for output without colours. It is also chosen if NO_COLOR is set.
	NoColour bool
	// Interrupts reports each Ctrl-C of a terminal that is not in raw mode, which is so with Plain; nil means that
	// there are none.
	Interrupts <-chan os.Signal
}

// A Command is a command of the input box, such as "/help".
type Command struct {
	// Name is the name without the slash. Aliases are further names.
	Name    string
	Aliases []string
	// Summary says in one line what the command does, and Usage which arguments it takes; empty for none.
	Summary string
	Usage   string
	// Complete returns the arguments that begin with a text; nil means that there is no completion.
	Complete func(ctx context.Context, args string) []string
	// Private reports whether these arguments may be secret: then they are neither shown again nor kept in the input
	// history. nil means that they never are.
	Private func(args string) bool
	// Run carries the command out. It runs in a goroutine of its own, until ctx ends.
	Run func(ctx context.Context, args string) (Output, error)
}

// An Output is what a command results in. The zero value shows nothing.
type Output struct {
	// Text is Markdown that is shown. It is made safe first.
	Text string
	// Prompt is sent to the model.
	Prompt []drawbridge.MessagePart
	// Session replaces the session that is shown, unless a run of that one goes on. Left, if it is not nil, is then called
	// in a goroutine with the session that is not shown: the one that was left, or Session if it was refused.
	Session *agent.Session
	Left    func(left *agent.Session)
	// Copy is put into the clipboard of the terminal.
	Copy string
	// Pane shows the plan and the todo list, or hides them. Questions shows the questions that wait. Quit ends Run.
	Pane, Questions, Quit bool
}

// complete sets the defaults.
func (o *Options) complete() error {
	if o.Session == nil {
		return errors.New("open the terminal: there is no session")
	}
	t := &o.Terminal
	if t.In == nil {
		t.In = os.Stdin
	}
	if t.Out == nil {
		t.Out = os.Stdout
	}
	if t.Env == nil {
		t.Env = os.Environ()
	}
	t.Plain = t.Plain || variable(t.Env, "TERM") == "dumb"
	t.NoColour = t.NoColour || t.Plain || variable(t.Env, "NO_COLOR") != ""
	if o.Dir == "" {
		o.Dir = "."
	}
	if o.Asker == nil {
		o.Asker = NewAsker()
	}
	if o.Shown == nil {
		o.Shown = &atomic.Pointer[agent.Session]{}
	}
	o.Shown.Store(o.Session)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Prompt == nil {
		o.Prompt = func(_ context.Context, text string) ([]drawbridge.MessagePart, error) {
			return []drawbridge.MessagePart{{Text: text}}, nil
		}
	}
	return nil
}

// variable returns the last value of an environment variable.
func variable(env []string, name string) (value string) {
	for _, e := range env {
		if len(e) > len(name) && e[:len(name)] == name && e[len(name)] == '=' {
			value = e[len(name)+1:]
		}
	}
	return value
}
