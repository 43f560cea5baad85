package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// parseCommand returns the name of a command and its arguments. A command is a slash, a letter, and then letters,
// digits, ":", "-", "?" or "_"; other texts, such as paths, are prompts.
func parseCommand(text string) (name, args string, ok bool) {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok || rest == "" {
		return "", "", false
	}
	name, args, _ = strings.Cut(rest, " ")
	if i := strings.IndexByte(name, '\n'); i >= 0 {
		name, args = rest[:i], rest[i+1:]
	}
	for i, r := range strings.ToLower(name) {
		letter := r >= 'a' && r <= 'z' || name == "?"
		if !letter && (i == 0 || !strings.ContainsRune("0123456789:-_", r)) {
			return "", "", false
		}
	}
	return strings.ToLower(name), strings.TrimSpace(args), true
}

func unknownCommand(name string) error {
	return fmt.Errorf("unknown command: /%s; /help lists the commands", safetext.Line(name))
}

// findCommand returns the command with a name or an alias.
func findCommand(all []Command, name string) (Command, bool) {
	i := slices.IndexFunc(all, func(c Command) bool {
		return strings.EqualFold(c.Name, name) || slices.Contains(c.Aliases, name)
	})
	if i < 0 {
		return Command{}, false
	}
	return all[i], true
}

// A builtin carries out the commands that need only the session.
type builtin struct {
	o       Options
	session *atomic.Pointer[agent.Session]
	push    func(agent.Event)
	all     []Command
}

// allCommands returns the built-in commands and those of the options, sorted by name.
func allCommands(o Options, session *atomic.Pointer[agent.Session], push func(agent.Event)) []Command {
	b := &builtin{o: o, session: session, push: push}
	for _, c := range append(b.commands(), o.Commands...) {
		i := slices.IndexFunc(b.all, func(other Command) bool { return other.Name == c.Name })
		if i >= 0 {
			b.all[i] = c
			continue
		}
		b.all = append(b.all, c)
	}
	slices.SortStableFunc(b.all, func(x, y Command) int { return strings.Compare(x.Name, y.Name) })
	return b.all
}

// withMore returns the commands with those of more whose names are free.
func withMore(all, more []Command) []Command {
	all = slices.Clone(all)
	for _, c := range more {
		if _, taken := findCommand(all, c.Name); !taken {
			all = append(all, c)
		}
	}
	return all
}

// findMore returns a command of the options that may change.
func findMore(ctx context.Context, o Options, name string) (Command, error) {
	if o.MoreCommands != nil {
		if c, ok := findCommand(o.MoreCommands(ctx), name); ok {
			return c, nil
		}
	}
	return Command{}, unknownCommand(name)
}

// withoutSecrets returns what may be shown and kept of an input: a command whose arguments may be secret loses them.
func withoutSecrets(all []Command, text string) string {
	name, args, ok := parseCommand(text)
	if c, found := findCommand(all, name); ok && found && c.Private != nil && c.Private(args) {
		return "/" + name
	}
	return text
}

func (b *builtin) commands() []Command {
	output := func(o Output) func(context.Context, string) (Output, error) {
		return func(context.Context, string) (Output, error) { return o, nil }
	}
	thinking := func(context.Context, string) []string { return thinkingLevels }
	all := []Command{
		{Name: "help", Aliases: []string{"?"}, Summary: "lists the commands", Run: b.help},
		{Name: "keys", Aliases: []string{"hotkeys"}, Summary: "lists the keys", Run: output(Output{Text: keysText})},
		{Name: "clear", Aliases: []string{"reset"}, Summary: "begins an empty conversation in this session", Run: b.clear},
		{Name: "summarize-context", Aliases: []string{"condense", "compact"},
			Summary: "replaces old turns by a summary", Run: b.condense},
		{Name: "session", Summary: "shows the state of the session", Run: b.show},
		{Name: "cost", Aliases: []string{"usage"}, Summary: "shows tokens and cost", Run: b.cost},
		{Name: "timeline", Aliases: []string{"tree"}, Summary: "lists the messages with their numbers", Run: b.timeline},
		{Name: "branch", Aliases: []string{"fork"}, Summary: "continues after a message of /timeline", Usage: "<number>",
			Run: b.branch},
		{Name: "name", Summary: "names the session", Usage: "<name>", Run: b.name},
		{Name: "plan", Summary: "changes to the plan mode, or back", Run: b.plan},
		{Name: "thinking", Summary: "shows or sets how much the model thinks", Usage: "[level]", Complete: thinking,
			Run: b.thinking},
		{Name: "copy", Summary: "copies the last answer to the clipboard", Run: b.copy},
		{Name: "export", Summary: "writes the conversation to a Markdown file", Usage: "[file]", Run: b.export},
		{Name: "approvals", Summary: "shows the questions that wait", Run: output(Output{Questions: true})},
		{Name: "todo", Summary: "shows or hides the plan and the todo list", Run: output(Output{Pane: true})},
		{Name: "quit", Aliases: []string{"exit"}, Summary: "ends the program", Run: output(Output{Quit: true})},
	}
	if b.o.Redact != nil {
		all = append(all, Command{Name: "share", Usage: "[file]", Run: b.share,
			Summary: "writes the conversation to a file, without what looks like a secret"})
	}
	return all
}

const keysText = "| Key | Meaning |\n|---|---|\n" +
	"| Enter | sends; while a run is going, queues |\n| Alt-Enter, Ctrl-J | new line |\n" +
	"| Up, Down | earlier prompts |\n| Tab | completes commands, their arguments and @files |\n| Ctrl-P | command palette |\n" +
	"| Shift-Tab | next permission mode |\n| Ctrl-T | plan and todo list |\n" +
	"| Ctrl-O | shows the last call and its result in full |\n| Esc | closes, starts without the servers, or cancels |\n" +
	"| Ctrl-C | cancels the run or the commands; twice ends the program |\n| Ctrl-D | ends the program |\n"

var thinkingLevels = []string{string(drawbridge.ThinkingOff), string(drawbridge.ThinkingMinimal),
	string(drawbridge.ThinkingLow), string(drawbridge.ThinkingMedium), string(drawbridge.ThinkingHigh),
	string(drawbridge.ThinkingXHigh)}

func (b *builtin) help(ctx context.Context, _ string) (Output, error) {
	all := b.all
	if b.o.MoreCommands != nil {
		all = withMore(all, b.o.MoreCommands(ctx))
	}
	var text strings.Builder
	text.WriteString("| Command | What it does |\n|---|---|\n")
	for _, c := range all {
		name := "/" + strings.Join(append([]string{c.Name}, c.Aliases...), ", /")
		if c.Usage != "" {
			name += " " + c.Usage
		}
		fmt.Fprintf(&text, "| %s | %s |\n", cellText(name), cellText(c.Summary))
	}
	return Output{Text: text.String()}, nil
}

// cellText returns text that stays one cell of a table and has no markup.
func cellText(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "[", `\[`, "*", `\*`, "_", `\_`, "`", "\\`").
		Replace(safetext.Line(text))
}

func (b *builtin) clear(ctx context.Context, _ string) (Output, error) {
	if err := b.session.Load().Clear(ctx); err != nil {
		return Output{}, err
	}
	return Output{Text: "The conversation is empty. /timeline still lists the earlier messages."}, nil
}

func (b *builtin) condense(ctx context.Context, _ string) (Output, error) {
	return Output{}, b.session.Load().Condense(ctx, b.push)
}

func (b *builtin) show(context.Context, string) (Output, error) {
	s := b.session.Load().Snapshot()
	name := s.Name
	if name == "" {
		name = "without a name"
	}
	return Output{Text: fmt.Sprintf("- session: %s (%s)\n- model: %s, thinking: %s\n- mode: %s\n- messages: %d, %s\n"+
		"- queued: %d\n", cellText(s.Session), cellText(name), cellText(s.Model), orDefault(string(s.Thinking)), s.Mode,
		s.Messages, tokensText(s.Tokens, s.Window), s.Queued)}, nil
}

func orDefault(level string) string {
	if level == "" {
		return "default"
	}
	return level
}

func (b *builtin) cost(context.Context, string) (Output, error) {
	s := b.session.Load().Snapshot()
	return Output{Text: fmt.Sprintf("- input: %d tokens, of which %d were read from the cache and %d written to it\n"+
		"- output: %d tokens\n- cost: $%.4f\n- window: %s\n", s.Usage.Input, s.Usage.CacheRead, s.Usage.CacheWrite,
		s.Usage.Output, s.Cost, tokensText(s.Tokens, s.Window))}, nil
}

func (b *builtin) timeline(ctx context.Context, _ string) (Output, error) {
	nodes, err := b.session.Load().Tree(ctx)
	if err != nil {
		return Output{}, err
	}
	if len(nodes) == 0 {
		return Output{Text: "There are no messages yet."}, nil
	}
	numbers := map[string]int{}
	var text strings.Builder
	text.WriteString("| Nr. | After | Kind | Text |\n|---|---|---|---|\n")
	for i, n := range nodes {
		numbers[n.ID] = i + 1
		number := strconv.Itoa(i + 1)
		if n.Current {
			number += " (current)"
		}
		after := ""
		if n.Parent != "" {
			after = strconv.Itoa(numbers[n.Parent])
		}
		line := strings.ReplaceAll(safetext.Truncate(n.Text, 100, safetext.Runes, "…"), "\n", " ")
		if n.Calls > 0 {
			line = strings.TrimSpace(fmt.Sprintf("%s (%d calls)", line, n.Calls))
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", number, after, n.Kind, cellText(line))
	}
	return Output{Text: text.String()}, nil
}

func (b *builtin) branch(ctx context.Context, args string) (Output, error) {
	session := b.session.Load()
	nodes, err := session.Tree(ctx)
	if err != nil {
		return Output{}, err
	}
	n, err := strconv.Atoi(args)
	if err != nil || n < 1 || n > len(nodes) {
		return Output{}, errors.New("/branch: there is no message with this number; /timeline lists them")
	}
	if err := session.Branch(ctx, nodes[n-1].ID); err != nil {
		return Output{}, err
	}
	return Output{Text: fmt.Sprintf("The conversation continues after message %d.", n)}, nil
}

func (b *builtin) name(ctx context.Context, args string) (Output, error) {
	if args == "" {
		return Output{}, errors.New("/name: the name is missing")
	}
	return Output{Text: "The session has the name " + cellText(args) + "."}, b.session.Load().SetName(ctx, args)
}

func (b *builtin) plan(ctx context.Context, _ string) (Output, error) {
	session := b.session.Load()
	mode, text := agent.PlanOnly, "Plan mode: calls that may change something are refused."
	if session.Snapshot().Mode == agent.PlanOnly {
		mode, text = agent.AskFirst, "The plan mode is off."
	}
	return Output{Text: text}, session.SetMode(ctx, mode)
}

func (b *builtin) thinking(ctx context.Context, args string) (Output, error) {
	session := b.session.Load()
	if args == "" {
		return Output{Text: "Thinking: " + orDefault(string(session.Snapshot().Thinking)) + ". Levels: " +
			strings.Join(thinkingLevels, ", ") + "."}, nil
	}
	if !slices.Contains(thinkingLevels, args) {
		return Output{}, fmt.Errorf("/thinking: the levels are %s", strings.Join(thinkingLevels, ", "))
	}
	return Output{Text: "Thinking: " + args + "."}, session.SetThinking(ctx, drawbridge.ThinkingLevel(args))
}

func (b *builtin) copy(ctx context.Context, _ string) (Output, error) {
	nodes, err := b.session.Load().Tree(ctx)
	if err != nil {
		return Output{}, err
	}
	for _, n := range slices.Backward(nodes) {
		if n.Current && n.Kind == agent.ModelEntry && n.Text != "" {
			return Output{Copy: n.Text, Text: fmt.Sprintf("Copied %d bytes.", len(n.Text))}, nil
		}
	}
	return Output{}, errors.New("/copy: there is no answer yet")
}
