package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/tui"
)

// sessionCommands returns the slash commands of a session that need more than the session. Those that pass on to the
// command line do what it does.
func (a *app) sessionCommands(s *agent.Session) []tui.Command {
	passOn := func(name, summary, usage string, words ...string) tui.Command {
		return tui.Command{Name: name, Summary: summary, Usage: usage, Run: func(ctx context.Context, args string) (tui.Output, error) {
			return a.runSubcommand(ctx, append(words[:len(words):len(words)], strings.Fields(args)...)...), nil
		}}
	}
	return []tui.Command{
		{Name: "model", Summary: "shows or sets the model", Usage: "[provider/name]", Run: func(ctx context.Context, args string) (tui.Output, error) {
			return a.setModel(ctx, s, args)
		}},
		{Name: "mode", Summary: "shows or sets what is asked: default, acceptEdits, plan, bypass", Usage: "[mode]",
			Run: func(ctx context.Context, args string) (tui.Output, error) {
				if args = strings.TrimSpace(args); args != "" {
					if err := s.SetMode(ctx, agent.PermissionMode(args)); err != nil {
						return tui.Output{}, err
					}
				}
				return tui.Output{Text: "The permission mode is " + string(s.Snapshot().Mode) + "."}, nil
			}},
		{Name: "resume", Aliases: []string{"sessions"}, Summary: "lists the sessions of this directory", Run: func(context.Context, string) (tui.Output, error) {
			return a.listSessions()
		}},
		{Name: "mcp", Summary: "servers: list, add, remove, test, auth, enable, disable and more", Usage: "[verb]", Run: func(ctx context.Context, args string) (tui.Output, error) {
			return a.runSubcommand(ctx, append([]string{"mcp"}, mcpWords(args)...)...), nil
		}},
		{Name: "tools", Summary: "tools: list, show NAME, search TEXT", Usage: "[verb]", Run: func(ctx context.Context, args string) (tui.Output, error) {
			words := strings.Fields(args)
			if len(words) == 0 {
				words = []string{"list"}
			}
			return a.runSubcommand(ctx, append([]string{"tools"}, words...)...), nil
		}},
		passOn("models", "lists the models", "[provider]", "models"),
		passOn("undo", "takes back what Drawbridge's own tools did to files", "[--list]", "undo"),
		passOn("ask", "calls that wait for an approval, and grants", "[verb]", "ask"),
		passOn("policy", "rules: check, explain", "[verb]", "policy"),
		passOn("doctor", "looks for problems", "", "doctor"),
	}
}

// runSubcommand runs a command of the command line, and returns its output as a block.
func (a *app) runSubcommand(ctx context.Context, args ...string) tui.Output {
	talk := &sessionTalk{command: "/" + strings.Join(args[:min(len(args), 2)], " ")}
	code := a.runInSession(ctx, talk, args)
	text := strings.TrimRight(talk.take(), "\n")
	if text == "" && code == exitOK {
		return tui.Output{}
	}
	if text == "" && code != exitOK {
		text = fmt.Sprintf("exit code %d", code)
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return tui.Output{Text: fence + "\n" + text + "\n" + fence}
}

// setModel shows or sets the model of a session.
func (a *app) setModel(ctx context.Context, s *agent.Session, name string) (tui.Output, error) {
	if name = strings.TrimSpace(name); name != "" {
		models, _, err := a.openChatModels(ctx)
		if err != nil {
			return tui.Output{}, err
		}
		defer models.Close()
		m, err := models.Find(ctx, name)
		if err != nil {
			return tui.Output{}, err
		}
		if err := s.SetModel(ctx, m); err != nil {
			return tui.Output{}, err
		}
	}
	return tui.Output{Text: "The model is " + s.Snapshot().Model + "."}, nil
}

// listSessions lists the sessions of the directory, and says how to go on with one.
func (a *app) listSessions() (tui.Output, error) {
	dir, err := a.sessionsDir()
	if err != nil {
		return tui.Output{}, err
	}
	all, err := agent.ListSessions(dir)
	if err != nil {
		return tui.Output{}, err
	}
	var b strings.Builder
	b.WriteString("`drawbridge --resume ID` goes on with a session:\n\n")
	for _, info := range all {
		fmt.Fprintf(&b, "- `%s` %s: %s\n", info.ID, info.Updated.Local().Format("2006-01-02 15:04"),
			safetext.Truncate(safetext.Exact(info.FirstPrompt), 60, safetext.Runes, "…"))
	}
	return tui.Output{Text: b.String()}, nil
}

// mcpVerbs maps the verbs of /mcp that the command line has under another name.
var mcpVerbs = map[string][]string{"status": {"list"}, "rm": {"remove"}, "help": {"--help"}, "tools": {"list"}}

// mcpWords returns the words after "mcp" on the command line for the arguments of /mcp.
func mcpWords(args string) []string {
	words := strings.Fields(args)
	if len(words) == 0 {
		return []string{"list"}
	}
	if other, ok := mcpVerbs[words[0]]; ok {
		return append(other[:len(other):len(other)], words[1:]...)
	}
	return words
}
