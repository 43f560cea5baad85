package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A terminalCommand is a slash command of a session.
type terminalCommand struct {
	names   []string
	summary string
	run     func(ctx context.Context, t *agentTerminal, args []string) error
}

// terminalCommands returns the slash commands in the order of /help. The first name is shown.
func terminalCommands() []terminalCommand {
	passOn := func(prefix ...string) func(context.Context, *agentTerminal, []string) error {
		return func(ctx context.Context, t *agentTerminal, args []string) error {
			return t.runSubcommand(ctx, append(prefix[:len(prefix):len(prefix)], args...)...)
		}
	}
	return []terminalCommand{
		{[]string{"help", "?"}, "list the commands", showCommands},
		{[]string{"quit", "exit"}, "end the session; it can be continued with --continue", func(context.Context, *agentTerminal, []string) error {
			return errSessionEnds
		}},
		{[]string{"clear", "reset", "new"}, "begin a new conversation; the old one stays in the history", func(ctx context.Context, t *agentTerminal, _ []string) error {
			return t.session.Clear(ctx)
		}},
		{[]string{"compact", "condense", "summarize-context"}, "replace old turns by a summary", func(ctx context.Context, t *agentTerminal, _ []string) error {
			return t.session.Condense(ctx, t.event)
		}},
		{[]string{"session"}, "show the session", showSession},
		{[]string{"cost", "usage"}, "show what the session used", showCost},
		{[]string{"timeline", "tree"}, "list the messages with their IDs", showTimeline},
		{[]string{"branch", "fork"}, "go on after the message ID", func(ctx context.Context, t *agentTerminal, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("/branch takes the ID of a message (see /timeline)")}
			}
			return t.session.Branch(ctx, args[0])
		}},
		{[]string{"name"}, "name the session", func(ctx context.Context, t *agentTerminal, args []string) error {
			return t.session.SetName(ctx, strings.Join(args, " "))
		}},
		{[]string{"mode"}, "show or set what is asked: default, acceptEdits, plan, bypass", setMode},
		{[]string{"plan"}, "only plan: calls that may change something are refused", func(ctx context.Context, t *agentTerminal, _ []string) error {
			return t.session.SetMode(ctx, agent.PlanOnly)
		}},
		{[]string{"thinking"}, "set how much the model thinks: off, minimal, low, medium, high, xhigh", func(ctx context.Context, t *agentTerminal, args []string) error {
			return t.session.SetThinking(ctx, drawbridge.ThinkingLevel(strings.Join(args, " ")))
		}},
		{[]string{"model"}, "show or set the model", setModel},
		{[]string{"models"}, "list the models", passOn("models")},
		{[]string{"mcp"}, "servers: list, add, remove, test, auth, enable, disable, reconnect and more", runMCP},
		{[]string{"tools"}, "tools: list, show NAME, search TEXT", func(ctx context.Context, t *agentTerminal, args []string) error {
			if len(args) == 0 {
				args = []string{"list"}
			}
			return t.runSubcommand(ctx, append([]string{"tools"}, args...)...)
		}},
		{[]string{"undo"}, "take back what Drawbridge's own tools did to files", passOn("undo")},
		{[]string{"approvals"}, "calls that wait for an approval, and grants", passOn("ask")},
		{[]string{"policy"}, "rules: check, explain", passOn("policy")},
		{[]string{"doctor"}, "look for problems", passOn("doctor")},
	}
}

func showCommands(_ context.Context, t *agentTerminal, _ []string) error {
	var b strings.Builder
	for _, c := range terminalCommands() {
		fmt.Fprintf(&b, "%-28s%s\n", "/"+strings.Join(c.names, ", /"), c.summary)
	}
	b.WriteString("@PATH in a prompt attaches a file. A line that you type while the model works is sent with its next turn.")
	t.say("%s", b.String())
	return nil
}

func showSession(_ context.Context, t *agentTerminal, _ []string) error {
	s := t.session.Snapshot()
	t.say("session %s %s\nmodel %s\npermission mode %s\n%d messages, about %d of %d tokens", s.Session, safetext.Exact(s.Name),
		s.Model, s.Mode, s.Messages, s.Tokens, s.Window)
	return nil
}

func showCost(_ context.Context, t *agentTerminal, _ []string) error {
	s := t.session.Snapshot()
	t.say("%d input tokens (%d from the cache), %d output tokens%s", s.Usage.Input, s.Usage.CacheRead, s.Usage.Output, costText(s.Cost))
	return nil
}

func showTimeline(ctx context.Context, t *agentTerminal, _ []string) error {
	nodes, err := t.session.Tree(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		mark := " "
		if n.Current {
			mark = "*"
		}
		t.say("%s %s %s: %s", mark, n.ID, n.Kind, oneLine(n.Text, 100))
	}
	return nil
}

func setMode(ctx context.Context, t *agentTerminal, args []string) error {
	if len(args) > 0 {
		if err := t.session.SetMode(ctx, agent.PermissionMode(args[0])); err != nil {
			return err
		}
	}
	t.say("permission mode %s", t.session.Snapshot().Mode)
	return nil
}

func setModel(ctx context.Context, t *agentTerminal, args []string) error {
	if len(args) > 0 {
		models, _, err := t.a.openChatModels(ctx)
		if err != nil {
			return err
		}
		defer models.Close()
		m, err := models.Find(ctx, args[0])
		if err != nil {
			return err
		}
		if err := t.session.SetModel(ctx, m); err != nil {
			return err
		}
	}
	t.say("model %s", t.session.Snapshot().Model)
	return nil
}

// mcpVerbs maps the verbs of /mcp that the command line has under another name.
var mcpVerbs = map[string][]string{"": {"list"}, "status": {"list"}, "rm": {"remove"}, "help": {"--help"}, "tools": {"list"}}

// runMCP runs a verb of the command "mcp", so that a session and the command line do the same.
func runMCP(ctx context.Context, t *agentTerminal, args []string) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	words, ok := mcpVerbs[verb]
	if !ok {
		words = []string{verb}
	}
	return t.runSubcommand(ctx, append(append([]string{"mcp"}, words...), args...)...)
}
