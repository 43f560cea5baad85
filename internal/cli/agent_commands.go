package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/tui"
)

// sessionCommands are the slash commands of a terminal that need more than the session.
type sessionCommands struct {
	a *app
	h *sessionHolder
}

// all returns the commands. Those that pass on to the command line do what it does.
func (c sessionCommands) all() []tui.Command {
	passOn := func(name, summary, usage, verb string) tui.Command { // verb is that of a command without arguments
		return tui.Command{Name: name, Summary: summary, Usage: usage, Run: func(ctx context.Context, args string) (tui.Output, error) {
			return c.passOn(ctx, name, cmp.Or(args, verb), name)
		}}
	}
	return []tui.Command{
		{Name: "model", Summary: "shows or sets the model", Usage: "[provider/name]", Complete: c.completeModels, Run: c.setModel},
		{Name: "mode", Summary: "shows or sets what is asked: default, acceptEdits, plan, bypass", Usage: "[mode]",
			Complete: completeModes, Run: c.setMode},
		{Name: "resume", Aliases: []string{"sessions"}, Summary: "goes on with a session of this directory, or lists them",
			Usage: "[ID]", Complete: c.completeSessions, Run: c.resume},
		{Name: "new", Summary: "begins a new session", Run: c.new},
		{Name: "reload", Summary: "reads the configuration again and mounts what is new", Run: c.reload},
		{Name: "settings", Summary: "shows the settings of the agent, and their files", Run: c.settings},
		{Name: "whats-new", Aliases: []string{"changelog"}, Summary: "says which version this is and where its changes are", Run: whatsNew},
		{Name: "debug", Summary: "shows what a bug report needs, without secrets", Run: c.debug},
		{Name: "login", Summary: "stores the key of a provider of models, or lists the providers", Usage: "[provider]",
			Private: func(string) bool { return true }, Complete: c.completeProviders, Run: c.login},
		{Name: "logout", Summary: "removes the stored key of a provider", Usage: "<provider>", Complete: c.completeProviders,
			Run: c.logout},
		{Name: "models-for", Aliases: []string{"scoped-models"}, Summary: "lists the models of a provider", Usage: "<provider>",
			Complete: c.completeProviders, Run: c.modelsFor},
		{Name: "jobs", Summary: "commands in the background: list, stop", Usage: "[verb]", Run: c.jobs},
		{Name: "mcp", Summary: "servers: list, add, remove, test, auth, enable, disable and more", Usage: "[verb]",
			Private: mcpMayHaveSecrets, Run: c.mcp},
		passOn("tools", "tools: list, show NAME, search TEXT", "[verb]", "list"),
		passOn("models", "lists the models", "[provider]", ""),
		passOn("undo", "takes back what Drawbridge's own tools did to files", "[--list]", ""),
		passOn("ask", "calls that wait for an approval, and grants", "[verb]", ""),
		passOn("policy", "rules: check, explain", "[verb]", ""),
		passOn("doctor", "looks for problems", "", ""),
		passOn("shield", "definitions that changed: held, accept, reject", "[verb]", "held"),
	}
}

// passOn runs a command of the command line with the arguments of a slash command. The verb must be one of the command.
func (c sessionCommands) passOn(ctx context.Context, name, args, command string) (tui.Output, error) {
	given, err := admin.SplitWords(args)
	if err != nil {
		return tui.Output{}, fmt.Errorf("/%s: %w", name, err)
	}
	if err := c.a.checkVerb(name, command, given); err != nil {
		return tui.Output{}, err
	}
	return c.runSubcommand(ctx, append([]string{command}, given...)...), nil
}

// checkVerb returns an error if the first argument of a command with verbs is not a verb. The error lists the verbs.
func (a *app) checkVerb(name, command string, given []string) error {
	cmd, _, err := NewRootCommand(a.Process).Find([]string{command})
	if err != nil || !cmd.HasAvailableSubCommands() || len(given) == 0 || strings.HasPrefix(given[0], "-") {
		return nil
	}
	var verbs []string
	for _, sub := range cmd.Commands() {
		if sub.Name() == given[0] || slices.Contains(sub.Aliases, given[0]) {
			return nil
		}
		if sub.IsAvailableCommand() {
			verbs = append(verbs, sub.Name()+" ("+sub.Short+")")
		}
	}
	return badVerb(name, given[0], verbs...)
}

// badVerb is the error for a verb that a command does not have. Each of verbs is a verb and its description.
func badVerb(name, verb string, verbs ...string) error {
	return fmt.Errorf("/%s: unrecognised action %s. /%s expects: %s", name, safetext.Quote(verb), name, strings.Join(verbs, ", "))
}

// runSubcommand runs a command of the command line with the persistent flags of this one, and returns its output as a
// block. The session then uses what the command changed.
func (c sessionCommands) runSubcommand(ctx context.Context, args ...string) tui.Output {
	c.a.session.commands.Add(1)
	defer c.a.session.commands.Add(-1)
	tools := c.h.current().tools
	talk := &sessionTalk{asker: c.a.session.asker, command: "/" + strings.Join(args[:min(len(args), 2)], " "),
		reloads: tools != nil && tools.local != nil, vault: c.a.vault}
	code := c.a.runInSession(ctx, talk, args)
	text := talk.finish(code)
	if text != "" {
		text = fenced(text)
	}
	if note := c.refresh(ctx, args, code); note != "" {
		text = strings.TrimPrefix(text+"\n\n"+note, "\n\n")
	}
	return tui.Output{Text: text}
}

// fenced returns a text as a block of Markdown that shows it as it is.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// mcpVerbs maps the verbs of /mcp that the command line has under another name.
var mcpVerbs = map[string]string{"status": "list", "rm": "remove", "help": "--help", "tools": "list", "connect": "enable",
	"disconnect": "disable"}

// mcpMayHaveSecrets reports whether arguments of /mcp may have a secret. A server can be added with a token, a header,
// a variable, an address or a command that has one, and --code takes one. A flag of a misspelt verb counts too.
func mcpMayHaveSecrets(args string) bool {
	words, err := admin.SplitWords(args)
	if err != nil {
		return true
	}
	if strings.HasPrefix(args, "-") && len(words) > 1 {
		return true
	}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if strings.Contains(word, "://") || value != "" || slices.Contains(secretFlags, name) {
			return true
		}
	}
	// What follows the name of the server is an address, a command or a flag.
	return len(words) > 2 && (words[0] == "add" || slices.Contains(words, "--"))
}

// secretFlags are the flags of "drawbridge mcp" whose values may be secret.
var secretFlags = []string{"--token", "--header", "-H", "--env", "-e", "--code"}

// mcp runs "drawbridge mcp". What it changes is in use at once.
func (c sessionCommands) mcp(ctx context.Context, args string) (tui.Output, error) {
	verb, rest, _ := strings.Cut(strings.TrimSpace(args), " ")
	if verb == "" {
		verb = "list"
	}
	if other, ok := mcpVerbs[verb]; ok {
		verb = other
	}
	if verb == "reload" {
		return c.reload(ctx, "")
	}
	return c.passOn(ctx, "mcp", verb+" "+rest, "mcp")
}

// reload reads the configuration again.
func (c sessionCommands) reload(ctx context.Context, _ string) (tui.Output, error) {
	tools, err := c.h.current().toolsOrError()
	if err != nil {
		return tui.Output{}, err
	}
	text, err := tools.reload(ctx)
	return tui.Output{Text: text}, err
}

// errNoTools and errClosed are the errors of commands that need the tools of a session.
var (
	errNoTools = errors.New("this session has no tools (--no-tools)")
	errClosed  = errors.New("the session is closed: /new begins another")
)

// setMode shows or sets the permission mode.
func (c sessionCommands) setMode(ctx context.Context, args string) (tui.Output, error) {
	s := c.h.current().session
	if args != "" {
		if err := s.SetMode(ctx, agent.PermissionMode(args)); err != nil {
			return tui.Output{}, err
		}
	}
	return tui.Output{Text: "The permission mode is " + string(s.Snapshot().Mode) + "."}, nil
}

func completeModes(_ context.Context, args string) []string {
	return beginning(args, textsOf(drawbridge.PermissionModes()))
}

// beginning returns the texts that begin with a prefix.
func beginning(prefix string, all []string) (found []string) {
	for _, text := range all {
		if strings.HasPrefix(strings.ToLower(text), strings.ToLower(prefix)) {
			found = append(found, text)
		}
	}
	return found
}
