package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/tui"
	"github.com/drawbridge-mcp/drawbridge/llm"
	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// agentFlags are the flags of the command line for a session of the agent.
type agentFlags struct {
	print, interactive, listModels, resumeLast, noTools, own bool
	plain, noColour                                          bool
	// link: a program holds the session. exact: resume is a whole ID.
	link, exact, elicitation                             bool
	model, fallback, thinking, dir, system, appendSystem string
	resume, mode, output                                 string
	tools                                                []string
	maxTurns                                             int
	maxCost                                              float64
	maxCalls                                             int64
}

// addAgentFlags adds the flags of the root command.
func addAgentFlags(root *cobra.Command, f *agentFlags) {
	flags := root.Flags()
	flags.BoolVarP(&f.print, "print", "p", false, "run one prompt, print the answer and exit; the prompt may be piped")
	flags.BoolVarP(&f.interactive, "interactive", "i", false, "start a session at the terminal, also with --print")
	flags.BoolVar(&f.plain, "plain", false, "lines without redrawing, for screen readers and simple terminals")
	flags.BoolVar(&f.noColour, "no-color", false, "no colours in a session")
	flags.BoolVar(&f.listModels, "list-models", false, "list the models and exit")
	flags.StringVar(&f.dir, "cwd", "", "working `DIRECTORY` of the session")
	flags.StringVar(&f.system, "system", "", "`TEXT` in place of the built-in instructions")
	flags.StringVar(&f.appendSystem, "append-system", "", "`TEXT` after the instructions")
	flags.StringVarP(&f.resume, "resume", "r", "", "go on with the session `ID`; its beginning is enough")
	flags.BoolVarP(&f.resumeLast, "continue", "c", false, "go on with the last session of the directory")
	flags.StringVar(&f.output, "output-format", "text", "output of --print: text, json or stream-json")
	flags.BoolVar(&f.link, "json", false, "let a program hold the session: JSON-RPC on standard input and output")
	flags.BoolVar(&f.link, "rpc", false, "the same as --json")
	addSessionFlags(root, f)
}

// addSessionFlags adds the flags of all commands that hold sessions.
func addSessionFlags(cmd *cobra.Command, f *agentFlags) {
	flags := cmd.Flags()
	flags.StringVarP(&f.model, "model", "m", "", "`MODEL` of new sessions, such as anthropic/NAME (see drawbridge models)")
	flags.StringVar(&f.fallback, "fallback-model", "", "`MODEL` that answers if the other one fails")
	flags.StringVar(&f.thinking, "thinking", "", "how much the model thinks: "+strings.Join(textsOf(drawbridge.ThinkingLevels()), ", "))
	flags.StringVar(&f.mode, "permission-mode", "", "what is asked at first: default, acceptEdits, plan or bypass")
	flags.StringSliceVar(&f.tools, "tools", nil, "only these of Drawbridge's own tools (a list with commas)")
	flags.BoolVar(&f.noTools, "no-tools", false, "no tools at all")
	flags.IntVar(&f.maxTurns, "max-turns", 0, "maximum number of answers of the model for a prompt (default 200)")
	flags.Int64Var(&f.maxCalls, "max-calls", 0, "maximum `NUMBER` of calls of tools in each session, with those of sub-agents and scripts")
	flags.Float64Var(&f.maxCost, "max-cost", 0, "maximum cost of each session in US `DOLLARS`")
	addOwnFlag(cmd, &f.own)
}

// asksForAgent reports whether the command line asks for a session of the agent: it has a prompt, or a flag of a session.
func asksForAgent(cmd *cobra.Command, args []string) bool {
	asked := slices.ContainsFunc(args, func(arg string) bool {
		return strings.ContainsAny(arg, " \n") || strings.HasPrefix(arg, "@")
	})
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { asked = asked || f.Changed })
	return asked
}

// runRoot runs the command line without a subcommand: a session of the agent, or at the first start "setup".
func (a *app) runRoot(cmd *cobra.Command, args []string, f agentFlags) error {
	asked := asksForAgent(cmd, args)
	switch {
	case f.listModels:
		list := a.newModelsCommand().command()
		list.SetArgs([]string{}) // nil would be the arguments of the process
		return list.ExecuteContext(cmd.Context())
	case !asked && len(args) > 0:
		return rejectUnknownCommand(cmd, args)
	case !asked && a.isFirstRun() && !a.hasModel(cmd.Context()):
		return a.runSetup(cmd.Context(), setupFlags{})
	case !asked && !a.isInteractive():
		return cmd.Help()
	}
	if f.dir != "" {
		dir := filepath.Clean(f.dir)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(a.Dir, dir)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return usageError{fmt.Errorf("--cwd %s is not a directory", safetext.Exact(f.dir))}
		}
		a.Dir = dir
	}
	if f.link {
		return a.runLink(cmd.Context(), f, args)
	}
	if f.print && !f.interactive {
		return a.runPrompt(cmd.Context(), f, args)
	}
	if !a.isInteractive() {
		return errors.New("a session needs a terminal; --print runs one prompt")
	}
	return a.runTerminal(cmd.Context(), f, args)
}

// runTerminal holds a session at the terminal.
func (a *app) runTerminal(ctx context.Context, f agentFlags, args []string) error {
	if _, err := promptOf(a.Dir, wordsOf(strings.Join(args, " "))); err != nil {
		return err
	}
	dir, err := a.sessionsDir()
	if err != nil {
		return err
	}
	f.elicitation = true
	// Ctrl-C cancels a run, and does not end the program.
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	defer stop()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	asker := tui.NewAsker()
	show := func(ctx context.Context, open toolsOpener) error {
		h := &sessionHolder{a: a, ctx: ctx, flags: f, openTools: open, held: map[*agent.Session]heldSession{}}
		first, err := h.open(ctx, f)
		if err != nil {
			return err
		}
		defer h.close()
		c := sessionCommands{a, h}
		return tui.Run(ctx, tui.Options{
			Session: first, Shown: &h.shown, Asker: asker, Commands: c.all(), MoreCommands: c.more, Redact: c.redact,
			Dir: a.Dir, First: strings.Join(args, " "), HistoryFile: filepath.Join(filepath.Dir(dir), "prompts"),
			Terminal: tui.Terminal{In: a.In, Out: a.Out, Env: a.Environ, Plain: f.plain, NoColour: f.noColour, Interrupts: interrupts},
			Prompt: func(_ context.Context, text string) ([]drawbridge.MessagePart, error) {
				return promptOf(a.Dir, wordsOf(text))
			},
		})
	}
	return a.withAsker(ctx, asker, !f.noTools, func(ctx context.Context) error { return a.withToolsOpener(ctx, f, show) })
}

// runPrompt runs one prompt and prints the answer.
func (a *app) runPrompt(ctx context.Context, f agentFlags, args []string) error {
	var words []string
	for _, text := range args {
		words = append(words, wordsOf(text)...)
	}
	prompt, err := promptOf(a.Dir, words)
	if err != nil {
		return err
	}
	if !IsTerminal(a.In) {
		piped, err := io.ReadAll(io.LimitReader(a.In, maxAttachedText+1))
		if err != nil {
			return fmt.Errorf("read the prompt: %w", err)
		}
		if len(piped) > maxAttachedText {
			return usageError{fmt.Errorf("read the prompt: standard input has more than %d MiB", maxAttachedText>>20)}
		}
		if text := strings.TrimSpace(string(piped)); text != "" {
			if prompt, err = withPiped(a.Dir, prompt, text); err != nil {
				return err
			}
		}
	}
	if len(prompt) == 0 {
		return usageError{errors.New("--print needs a prompt: as an argument, or on standard input")}
	}
	return a.withSession(ctx, f, func(ctx context.Context, s *agent.Session) error {
		return a.printAnswer(ctx, s, prompt, f.output)
	})
}

// withSession opens a session and calls work with it.
func (a *app) withSession(ctx context.Context, f agentFlags, work func(context.Context, *agent.Session) error) error {
	return a.withHistory(ctx, f, func(ctx context.Context, s *agent.Session, _ *agent.FileHistory) error {
		return work(ctx, s)
	})
}

// withHistory opens a session and calls work with it and its history.
func (a *app) withHistory(ctx context.Context, f agentFlags,
	work func(context.Context, *agent.Session, *agent.FileHistory) error) error {
	return a.withToolsOpener(ctx, f, func(ctx context.Context, open toolsOpener) error {
		return a.holdSession(ctx, f, open, func(ctx context.Context, s openSession) error {
			return work(ctx, s.session, s.history)
		})
	})
}

// openModel returns the model of the session.
func (f agentFlags) openModel(ctx context.Context, models *llm.ChatModels) (agent.Model, error) {
	if f.model == "" && f.fallback == "" {
		return models.Open(ctx)
	}
	main, err := models.Find(ctx, f.model)
	if err != nil || f.fallback == "" {
		return main, err
	}
	fallback, err := models.Find(ctx, f.fallback)
	if err != nil {
		return nil, err
	}
	return models.WithFallback(main, fallback), nil
}

// sessionsDir returns the directory of the sessions of a working directory. Its name has a readable part, and a hash that
// tells directories with the same readable part apart.
func (a *app) sessionsDir() (string, error) {
	root, ok := gateway.SessionsRoot(a.Env)
	if !ok {
		return "", errors.New("locate the sessions: the home directory is unknown (set HOME or XDG_STATE_HOME)")
	}
	name := strings.Map(func(r rune) rune {
		if r == filepath.Separator || r == ':' {
			return '-'
		}
		return r
	}, strings.Trim(a.Dir, string(filepath.Separator)))
	name = safetext.Truncate(name, maxSessionsName, safetext.Bytes, "")
	sum := sha256.Sum256([]byte(a.Dir))
	return filepath.Join(root, "--"+name+"--"+hex.EncodeToString(sum[:4])), nil
}

// maxSessionsName is the maximum length of the readable part in bytes.
const maxSessionsName = 100

// openHistory opens the history of a new session, or of the one that the flags name.
func (a *app) openHistory(f agentFlags) (*agent.FileHistory, error) {
	dir, err := a.sessionsDir()
	if err != nil {
		return nil, err
	}
	if f.resume == "" && !f.resumeLast {
		return agent.OpenHistory(dir, ulid.Make().String())
	}
	id, err := chooseSession(dir, f)
	if err != nil {
		return nil, err
	}
	return agent.OpenHistory(dir, id)
}

// chooseSession returns the ID of the session in a directory that the flags name.
func chooseSession(dir string, f agentFlags) (string, error) {
	all, err := agent.ListSessions(dir)
	if err != nil {
		return "", err
	}
	if f.resume == "" && len(all) > 0 {
		return all[0].ID, nil
	}
	if f.resume == "" {
		return "", usageError{errors.New("no session was held in this directory yet")}
	}
	found := 0
	var id string
	for _, info := range all {
		switch {
		case info.ID == f.resume:
			return info.ID, nil
		case !f.exact && len(info.ID) >= len(f.resume) && strings.EqualFold(info.ID[:len(f.resume)], f.resume):
			id, found = info.ID, found+1
		}
	}
	switch found {
	case 0:
		return "", usageError{fmt.Errorf("no session %s was held in this directory (/resume in a session lists them)",
			safetext.Exact(f.resume))}
	case 1:
		return id, nil
	}
	return "", usageError{fmt.Errorf("%d sessions begin with %s: write more of the ID", found, safetext.Exact(f.resume))}
}
