package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/tui"
)

// new begins a new session, as the flags of the command line describe it.
func (c sessionCommands) new(ctx context.Context, _ string) (tui.Output, error) {
	f := c.h.flags
	f.resume, f.resumeLast = "", false
	return c.change(ctx, f, "A new session begins.")
}

// resume goes on with the session whose ID begins with the arguments, or lists the sessions.
func (c sessionCommands) resume(ctx context.Context, args string) (tui.Output, error) {
	if args == "" {
		return c.listSessions()
	}
	dir, err := c.a.sessionsDir()
	if err != nil {
		return tui.Output{}, err
	}
	f := c.h.flags
	f.resume, f.resumeLast, f.mode = args, false, ""
	if f.resume, err = chooseSession(dir, f); err != nil {
		return tui.Output{}, err
	}
	if f.exact = true; f.resume == c.h.current().session.Snapshot().Session {
		return tui.Output{}, errors.New("/resume: this session is shown already")
	}
	return c.change(ctx, f, "The session goes on. /timeline lists its messages.")
}

// change opens a session and shows it. The session that was shown before is closed.
func (c sessionCommands) change(ctx context.Context, f agentFlags, text string) (tui.Output, error) {
	if c.h.current().session.Snapshot().Running {
		return tui.Output{}, agent.ErrRunning
	}
	s, err := c.h.open(ctx, f)
	if err != nil {
		return tui.Output{}, err
	}
	state := s.Snapshot()
	what := state.Session
	if state.Name != "" {
		what += " (" + state.Name + ")"
	}
	return tui.Output{Session: s, Left: c.h.leave, Text: fmt.Sprintf("%s\n\n- session: %s\n- model: %s, mode: %s\n", text,
		codeText(what), codeText(state.Model), state.Mode)}, nil
}

// codeText returns a text that Markdown shows as it is.
func codeText(text string) string {
	return "`" + strings.ReplaceAll(truncateLine(text, maxShownText), "`", "'") + "`"
}

// maxShownText is the maximum length of a shown name or text in characters.
const maxShownText = 200

// listSessions lists the sessions of the directory.
func (c sessionCommands) listSessions() (tui.Output, error) {
	dir, err := c.a.sessionsDir()
	if err != nil {
		return tui.Output{}, err
	}
	all, err := agent.ListSessions(dir)
	if err != nil {
		return tui.Output{}, err
	}
	if len(all) == 0 {
		return tui.Output{Text: "No session was held in this directory yet."}, nil
	}
	shown := c.h.current().session.Snapshot().Session
	var b strings.Builder
	b.WriteString("/resume with the beginning of an ID goes on with a session:\n\n")
	for _, info := range all {
		mark, text := "", info.FirstPrompt
		if info.ID == shown {
			mark = " (shown)"
		}
		if info.Name != "" {
			text = info.Name
		}
		if info.Err != "" {
			text = info.Err
		}
		fmt.Fprintf(&b, "- `%s` %s%s: %s\n", info.ID, info.Updated.Local().Format("2006-01-02 15:04"), mark,
			codeText(truncateLine(text, 60)))
	}
	return tui.Output{Text: b.String()}, nil
}

// completeSessions returns the IDs of sessions that begin with a text, the newest first.
func (c sessionCommands) completeSessions(_ context.Context, args string) (ids []string) {
	dir, err := c.a.sessionsDir()
	if err != nil {
		return nil
	}
	all, err := agent.ListSessions(dir)
	if err != nil {
		return nil
	}
	for _, info := range all {
		ids = append(ids, info.ID)
	}
	return beginning(args, ids)
}

// settings shows the settings of the agent, and the files in which they are.
func (c sessionCommands) settings(ctx context.Context, _ string) (tui.Output, error) {
	set, err := c.a.readConfig(ctx)
	if err != nil {
		return tui.Output{}, err
	}
	dir, err := c.configDir()
	if err != nil {
		return tui.Output{}, err
	}
	var b strings.Builder
	line := func(name, value, otherwise string) {
		if value == "" {
			value = otherwise
		} else {
			value = codeText(value)
		}
		fmt.Fprintf(&b, "- %s: %s\n", name, value)
	}
	path := filepath.Join(dir, "drawbridge.toml")
	if _, err := os.Stat(path); err == nil {
		fmt.Fprintf(&b, "The settings are those of %s:\n\n", codeText(path))
	} else {
		fmt.Fprintf(&b, "There is no %s, so the defaults hold:\n\n", codeText(path))
	}
	line("model", set.Settings.Agent.Model, "the first provider that has a key")
	line("fallback_model", set.Settings.Agent.FallbackModel, "none")
	line("thinking", string(set.Settings.Agent.Thinking), "the provider's own")
	for _, p := range set.Settings.Providers {
		line("models.providers."+codeText(p.Name), p.Kind, "built in")
	}
	line("deck profile for clients", set.Settings.Deck.Profile, "none")
	sessions, err := c.a.sessionsDir()
	if err == nil {
		line("sessions of this directory", sessions, "")
	}
	line("prompts", filepath.Join(dir, promptsDir), "")
	b.WriteString("\nConfiguration was read from:\n\n")
	for _, source := range set.Sources {
		fmt.Fprintf(&b, "- %s\n", codeText(source))
	}
	state := c.h.current().session.Snapshot()
	fmt.Fprintf(&b, "\nIn this session: model %s, mode %s. /model, /mode and /thinking change it, /reload reads the files again.\n",
		codeText(state.Model), state.Mode)
	return tui.Output{Text: b.String()}, nil
}

// configDir returns the directory of the user's own configuration.
func (c sessionCommands) configDir() (string, error) {
	own, _, err := config.AddonDirs(c.a.configOptions())
	if err == nil && own == "" {
		err = errors.New("the directory of the configuration is unknown (set HOME or XDG_CONFIG_HOME)")
	}
	return filepath.Dir(own), err
}

// whatsNew says which version this is. The list of changes is not part of the program.
func whatsNew(context.Context, string) (tui.Output, error) {
	return tui.Output{Text: "This is drawbridge " + codeText(buildVersion()) +
		". What changed in each version is in CHANGELOG.md of its source."}, nil
}

// debug shows the state that a bug report needs. It has no secrets.
func (c sessionCommands) debug(ctx context.Context, _ string) (tui.Output, error) {
	open := c.h.current()
	state := open.session.Snapshot()
	build := buildReport(debug.ReadBuildInfo())
	var b strings.Builder
	fmt.Fprintf(&b, "- drawbridge: %s %s, %s, %s\n", build.Version, build.Revision, build.Go, build.Platform)
	fmt.Fprintf(&b, "- session: `%s`", state.Session)
	if open.history != nil {
		fmt.Fprintf(&b, " in %s", codeText(c.a.abbreviateHome(open.history.Path())))
	}
	fmt.Fprintf(&b, "\n- model: %s, thinking: %s, window: %d\n", codeText(state.Model), cmp.Or(string(state.Thinking), "default"), state.Window)
	fmt.Fprintf(&b, "- mode: %s, running: %t, condensing: %t, last run failed: %t\n", state.Mode, state.Running,
		state.Condensing, state.Faulted)
	fmt.Fprintf(&b, "- messages: %d, queued: %d, tokens: about %d, cost: $%.4f\n", state.Messages, state.Queued, state.Tokens,
		state.Cost)
	switch {
	case open.tools == nil:
		b.WriteString("- tools: none\n")
	case open.tools.gateway != nil:
		b.WriteString("- tools: of this process\n")
	default:
		b.WriteString("- tools: of the hub\n")
	}
	if open.tools != nil {
		brief, err := open.tools.Brief(ctx, c.identity(), false)
		if err != nil {
			return tui.Output{}, err
		}
		away := 0
		for _, s := range brief.Servers {
			if s.Problem != "" {
				away++
			}
		}
		all, err := open.tools.Select(ctx, c.identity(), "", nil)
		if err != nil {
			return tui.Output{}, err
		}
		fmt.Fprintf(&b, "- servers: %d, not connected: %d; tools: %d\n", len(brief.Servers), away, len(all))
	}
	term, _ := c.a.Env("TERM")
	fmt.Fprintf(&b, "- terminal: %s, plain: %t\n\n`drawbridge report` writes more, to a file.\n", codeText(term), c.h.flags.plain)
	return tui.Output{Text: b.String()}, nil
}

// identity returns the identity of the session's own agent.
func (c sessionCommands) identity() agent.Identity {
	state := c.h.current().session.Snapshot()
	return agent.Identity{Session: state.Session, Mode: state.Mode}
}

// redact removes what looks like a secret from a text: the known secrets, and texts in the form of one. The error means
// that the known secrets could not be read.
func (c sessionCommands) redact(ctx context.Context, text string) (string, error) {
	known, err := c.a.adminService().KnownSecrets(ctx)
	if err != nil {
		return "", err
	}
	rules := audit.RedactionRules{KnownSecrets: func() []string { return known }}
	return rules.RedactText(text), nil
}
