// Package addons runs addons: programs that a person or a project adds to Drawbridge. An addon is a directory with a
// manifest and, usually, a program. It can observe, rewrite or block calls of tools, add variables to the environment
// of commands, and provide its own tools.
//
// The program reads and writes JSON-RPC 2.0, one object per line. It is started at the first event that concerns it,
// and ends with Drawbridge. The kinds of its handlers determine what the program may change. An answer that changes
// anything else is an error.
package addons

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
)

// ManifestName is the name of the manifest in the directory of an addon.
const ManifestName = "manifest.toml"

// maxManifest is the maximum size of a manifest in bytes.
const maxManifest = 256 << 10

// The default and the maximum of the setting timeout.
const (
	defaultTimeout = 5 * time.Second
	maxTimeout     = 10 * time.Minute
)

// A Manifest describes an addon.
type Manifest struct {
	// ID is the name of the addon, which is also the name of its directory.
	ID      string `toml:"id"`
	Version string `toml:"version"`
	Summary string `toml:"summary"`
	// Exec is the program and its arguments. A relative path with a slash is relative to the directory of the addon. A
	// name without a slash is searched in PATH.
	Exec []string `toml:"exec"`
	// Timeout is the time limit for each answer, as a duration such as "5s".
	Timeout string `toml:"timeout"`
	// OnError determines the effect of a failed handler on the call: "block" (the default) or "continue".
	OnError string `toml:"on-error"`

	Handlers []Handler `toml:"handler"`
	Gates    []Gate    `toml:"gate"`
	Tools    []Tool    `toml:"tool"`
	// Commands are the commands that the addon adds to the terminal of the agent.
	Commands []Command `toml:"command"`
}

// A Handler sends an event to the program.
type Handler struct {
	Event string `toml:"event"`
	// Kind is what the program may do: with "observe" it only receives the event, with "transform" it may rewrite the
	// call, and with "gate" it may block the call.
	Kind string `toml:"kind"`
	// MatchTool is a glob for the names of tools; empty means all.
	MatchTool string `toml:"match-tool"`
}

// A Gate blocks calls without sending an event to the program.
type Gate struct {
	Event     string `toml:"event"`
	MatchTool string `toml:"match-tool"`
	Reason    string `toml:"reason"`
}

// A Tool is a tool of an addon. Its calls are sent to the program as the event tool:call.
type Tool struct {
	Name        string `toml:"name"`
	Title       string `toml:"title"`
	Description string `toml:"description"`
	// InputSchema is the JSON Schema of the arguments; empty means an object with any members.
	InputSchema string `toml:"input-schema"`
	// ReadOnly reports whether the tool changes nothing.
	ReadOnly bool `toml:"read-only"`
	// Scopes are the scopes that a client needs; absent means "exec".
	Scopes []string `toml:"scopes"`
}

// A Command is a command of the agent's terminal.
type Command struct {
	Name    string   `toml:"name"`
	Summary string   `toml:"summary"`
	Exec    []string `toml:"exec"`
}

// The kinds of handlers.
const (
	Observe   = "observe"
	Transform = "transform"
	Block     = "gate"
)

// The events that Drawbridge sends. The other events of Events are reserved for the agent.
const (
	ToolBefore   = "tool:before"
	ToolAfter    = "tool:after"
	ShellEnv     = "shell:env"
	SessionStart = "session:start"
	SessionEnd   = "session:end"
	toolCall     = "tool:call"
)

// An Event is an event for which a manifest can have handlers.
type Event struct {
	Name string
	// Fires reports whether this version of Drawbridge sends the event. The other events are reserved for the agent.
	Fires bool
	// Kinds are the allowed kinds of handlers for the event.
	Kinds []string
}

// Events returns all events.
func Events() []Event {
	all := func(kinds ...string) []string { return kinds }
	return []Event{
		{SessionStart, true, all(Observe)},
		{SessionEnd, true, all(Observe)},
		{"turn:start", false, all(Observe)},
		{"turn:end", false, all(Observe)},
		{ToolBefore, true, all(Observe, Transform, Block)},
		{ToolAfter, true, all(Observe, Transform)},
		{"chat:params", false, all(Observe, Transform)},
		{"chat:message", false, all(Observe, Transform)},
		{ShellEnv, true, all(Observe, Transform)},
		{"input:submit", false, all(Observe, Transform, Block)},
		{"context:build", false, all(Observe, Transform)},
		{"compact:build", false, all(Observe, Transform)},
		{"compact:before", false, all(Observe, Block)},
	}
}

// Fires reports whether this version of Drawbridge sends an event.
func Fires(event string) bool {
	e, ok := findEvent(event)
	return ok && e.Fires
}

// findEvent returns the event with a name.
func findEvent(name string) (Event, bool) {
	for _, e := range Events() {
		if e.Name == name {
			return e, true
		}
	}
	return Event{}, false
}

// reservedCommands returns the names of the terminal's own commands, which an addon must not use.
func reservedCommands() []string {
	return []string{"help", "quit", "exit", "clear", "model", "compact"}
}

// ReadManifest reads and checks the manifest in the directory of an addon. The error describes the first mistake in the
// manifest.
func ReadManifest(dir string) (Manifest, error) {
	file := filepath.Join(dir, ManifestName)
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Manifest{}, fmt.Errorf("%s has no %s; docs/addons.md shows one", dir, ManifestName)
	case err != nil:
		return Manifest{}, fmt.Errorf("read the manifest: %w", err)
	case !info.Mode().IsRegular():
		return Manifest{}, fmt.Errorf("read the manifest: %s is not a regular file", file)
	case info.Size() > maxManifest:
		return Manifest{}, fmt.Errorf("read the manifest: %s has more than %d bytes", file, maxManifest)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return Manifest{}, fmt.Errorf("read the manifest: %w", err)
	}
	m, err := ParseManifest(string(text))
	switch {
	case err != nil:
		return m, fmt.Errorf("%s: %w", file, err)
	case m.ID != filepath.Base(dir):
		return m, fmt.Errorf("%s: the id is %q, and the directory is named %q", file, m.ID, filepath.Base(dir))
	}
	return m, nil
}

// ParseManifest parses and checks the text of a manifest.
func ParseManifest(text string) (m Manifest, err error) {
	meta, err := toml.Decode(text, &m)
	if err != nil {
		return m, err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return m, fmt.Errorf("unknown member %q", unknown[0].String())
	}
	return m, m.check()
}

var namePattern = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// isName reports whether a text can be the name of an addon, a tool or a command.
func isName(name string) bool { return namePattern().MatchString(name) }

func (m Manifest) check() error {
	switch timeout, err := m.timeout(); {
	case !isName(m.ID):
		return errors.New("id must be a letter, then letters, digits, - and _, 64 at most")
	case m.Version == "":
		return errors.New("version is missing")
	case err != nil || timeout <= 0 || timeout > maxTimeout:
		return fmt.Errorf("timeout must be a duration up to %s, such as \"5s\"", maxTimeout)
	case m.OnError != "" && m.OnError != "block" && m.OnError != "continue":
		return errors.New("on-error must be block or continue")
	case len(m.Exec) == 0 && (len(m.Handlers) > 0 || len(m.Tools) > 0):
		return errors.New("exec is missing: handlers and tools need a program")
	case slices.Contains(m.Exec, ""):
		return errors.New("exec has an empty part")
	}
	for i, h := range m.Handlers {
		if err := h.check(); err != nil {
			return fmt.Errorf("handler %d: %w", i+1, err)
		}
	}
	for i, g := range m.Gates {
		if err := g.check(); err != nil {
			return fmt.Errorf("gate %d: %w", i+1, err)
		}
	}
	if err := checkTools(m.Tools); err != nil {
		return err
	}
	return checkCommands(m.Commands)
}

func (m Manifest) timeout() (time.Duration, error) {
	if m.Timeout == "" {
		return defaultTimeout, nil
	}
	return time.ParseDuration(m.Timeout)
}

func (h Handler) check() error {
	event, ok := findEvent(h.Event)
	switch {
	case !ok:
		return fmt.Errorf("unknown event %q", h.Event)
	case !slices.Contains(event.Kinds, h.Kind):
		return fmt.Errorf("kind %q: for %s it must be %s", h.Kind, h.Event, strings.Join(event.Kinds, " or "))
	case h.MatchTool != "" && h.Event != ToolBefore && h.Event != ToolAfter:
		return fmt.Errorf("match-tool is for %s and %s", ToolBefore, ToolAfter)
	}
	return checkGlob(h.MatchTool)
}

func (g Gate) check() error {
	switch {
	case g.Event != ToolBefore:
		return fmt.Errorf("event must be %s", ToolBefore)
	case g.MatchTool == "":
		return errors.New("match-tool is missing")
	case strings.TrimSpace(g.Reason) == "":
		return errors.New("reason is missing")
	}
	return checkGlob(g.MatchTool)
}

func checkGlob(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("match-tool %q is not a valid glob", pattern)
	}
	return nil
}

// matches reports whether a glob matches the name of a tool. An empty glob matches every name.
func matches(pattern, tool string) bool {
	if pattern == "" || pattern == "*" {
		return true
	}
	ok, err := path.Match(pattern, tool)
	return err == nil && ok
}

func checkTools(tools []Tool) error {
	seen := map[string]bool{}
	for i, t := range tools {
		var schema map[string]any
		switch {
		case !isName(t.Name):
			return fmt.Errorf("tool %d: name must be a letter, then letters, digits, - and _, 64 at most", i+1)
		case seen[naming.Canonical(t.Name)]:
			return fmt.Errorf("tool %q: another tool has the same name", t.Name)
		case strings.TrimSpace(t.Description) == "":
			return fmt.Errorf("tool %q: description is missing", t.Name)
		case t.InputSchema != "" && json.Unmarshal([]byte(t.InputSchema), &schema) != nil:
			return fmt.Errorf("tool %q: input-schema must be a JSON object", t.Name)
		case schema != nil && schema["type"] != "object":
			return fmt.Errorf(`tool %q: input-schema must have "type": "object"`, t.Name)
		}
		seen[naming.Canonical(t.Name)] = true
	}
	return nil
}

func checkCommands(commands []Command) error {
	seen := map[string]bool{}
	for i, c := range commands {
		switch {
		case !isName(c.Name):
			return fmt.Errorf("command %d: name must be a letter, then letters, digits, - and _, 64 at most", i+1)
		case slices.Contains(reservedCommands(), c.Name) || seen[c.Name]:
			return fmt.Errorf("command %q: the name is taken", c.Name)
		case len(c.Exec) == 0:
			return fmt.Errorf("command %q: exec is missing", c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}
