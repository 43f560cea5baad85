package tui

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// maxChoices is how many files are offered for completion.
const maxChoices = 100

// A choice is one line of a list. Taking it replaces the whole input by text.
type choice struct{ label, detail, text string }

// A chooser is a list in which a person chooses.
type chooser struct {
	choices []choice
	at      int
}

// lines returns the part of the list around the chosen line.
func (c *chooser) lines(p painter, width, limit int) (lines []string) {
	limit = min(max(limit-1, 1), 8)
	from := min(max(0, c.at-limit/2), max(0, len(c.choices)-limit))
	for i := from; i < min(from+limit, len(c.choices)); i++ {
		item := c.choices[i]
		label := cut(item.label, width-2)
		if item.detail != "" {
			label = ansi.Truncate(pad(safetext.Line(item.label), 22)+" "+safetext.Line(item.detail), width-2, "…")
		}
		if i == c.at {
			lines = append(lines, p.paint(chosenStyle, "> "+label))
			continue
		}
		lines = append(lines, "  "+label)
	}
	return lines
}

// pressChooser handles a key while a list is shown.
func (m *model) pressChooser(name string) bool {
	if m.chooser == nil {
		return false
	}
	c := m.chooser
	switch name {
	case "up", "shift+tab":
		c.at = (c.at + len(c.choices) - 1) % max(len(c.choices), 1)
	case "down":
		c.at = (c.at + 1) % max(len(c.choices), 1)
	case "esc":
		m.closeChooser()
	case "tab", "enter":
		if len(c.choices) == 0 {
			m.closeChooser()
			return true
		}
		text := c.choices[c.at].text
		if name == "enter" && !m.palette && strings.TrimSpace(text) == strings.TrimSpace(string(m.input.text)) {
			m.chooser = nil
			return false // it is complete: send it
		}
		m.closeChooser()
		m.input.set(text)
		if name == "enter" && m.isWholeCommand(text) {
			m.enter()
		}
	default:
		return false
	}
	return true
}

func (m *model) closeChooser() {
	m.chooser = nil
	if m.palette {
		m.palette = false
		m.input.set("")
	}
}

// isWholeCommand reports whether text is a command that takes no arguments.
func (m *model) isWholeCommand(text string) bool {
	name, args, ok := parseCommand(text)
	c, found := findCommand(withMore(m.commands, m.more), name)
	return ok && found && args == "" && c.Usage == ""
}

// openPalette shows all commands. What is typed then filters them.
func (m *model) openPalette() {
	m.palette = true
	m.input.set("")
	m.askForMore()
	m.suggest()
}

// askForMore asks for the commands that may change, unless it is done already.
func (m *model) askForMore() {
	if m.o.MoreCommands == nil || m.asking {
		return
	}
	m.asking = true
	m.host.background(func(ctx context.Context) tea.Msg { return moreMsg{m.o.MoreCommands(ctx)} })
}

// takeMore takes the commands that may change, and offers them if commands are being chosen.
func (m *model) takeMore(commands []Command) {
	m.asking, m.more = false, commands
	if m.palette || isCommandName(string(m.input.text)) && (m.chooser == nil || m.chooser.at == 0) {
		m.suggest()
	}
}

// isCommandName reports whether an input is the beginning of a command, without arguments.
func isCommandName(text string) bool {
	return strings.HasPrefix(text, "/") && !strings.ContainsAny(text, " \n")
}

// suggest offers what the input may become.
func (m *model) suggest() {
	text := string(m.input.text)
	m.chooser = nil
	switch {
	case m.palette:
		m.chooser = &chooser{choices: m.commandChoices(text, true)}
	case isCommandName(text):
		if text == "/" {
			m.askForMore()
		}
		if found := m.commandChoices(text[1:], false); len(found) > 0 {
			m.chooser = &chooser{choices: found}
		}
	case strings.HasPrefix(lastWord(text), "@"):
		m.completeInput()
	}
}

// commandChoices returns the command with a name, and then those whose names begin with it. For the palette, names that
// contain it follow, and then summaries that do.
func (m *model) commandChoices(text string, palette bool) (found []choice) {
	const shortest = 3 // for a search in summaries
	text = strings.ToLower(text)
	ways := []func(c Command, name string) bool{
		func(_ Command, name string) bool { return name == text },
		func(_ Command, name string) bool { return strings.HasPrefix(name, text) }}
	if palette {
		ways = append(ways, func(_ Command, name string) bool { return strings.Contains(name, text) })
	}
	if palette && len(text) >= shortest {
		ways = append(ways, func(c Command, _ string) bool { return strings.Contains(strings.ToLower(c.Summary), text) })
	}
	seen := map[string]bool{}
	all := withMore(m.commands, m.more)
	for _, way := range ways {
		for _, c := range all {
			names := append([]string{c.Name}, c.Aliases...)
			i := slices.IndexFunc(names, func(name string) bool { return way(c, name) })
			if i < 0 || seen[c.Name] {
				continue
			}
			seen[c.Name] = true
			name := "/" + names[i]
			if c.Usage != "" {
				name += " "
			}
			found = append(found, choice{strings.TrimSpace(name + c.Usage), c.Summary, name})
		}
	}
	return found
}

// completeInput looks for arguments or files in the background.
func (m *model) completeInput() {
	text := string(m.input.text)
	if word := lastWord(text); strings.HasPrefix(word, "@") {
		m.host.background(func(context.Context) tea.Msg {
			return choicesMsg{text, fileChoices(m.o.Dir, text[:len(text)-len(word)], word[1:])}
		})
		return
	}
	name, args, ok := parseCommand(text)
	if c, found := findCommand(withMore(m.commands, m.more), name); ok && found && c.Complete != nil {
		m.host.background(func(ctx context.Context) tea.Msg {
			var choices []choice
			for _, a := range c.Complete(ctx, args) {
				choices = append(choices, choice{label: a, text: "/" + name + " " + a})
			}
			return choicesMsg{text, choices}
		})
	}
}

// lastWord returns the word at the end of a text.
func lastWord(text string) string { return text[strings.LastIndexAny(text, " \n")+1:] }

// fileChoices lists the files of one directory that begin with a path. before is the input before "@".
func fileChoices(dir, before, path string) (found []choice) {
	folder, prefix := filepath.Split(filepath.FromSlash(path))
	at := filepath.Join(dir, folder)
	if filepath.IsAbs(folder) {
		at = folder
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, ".") && !strings.HasPrefix(prefix, ".") ||
			strings.ContainsAny(name, " \n") {
			continue
		}
		end := " "
		if e.IsDir() {
			end = "/"
		}
		whole := filepath.ToSlash(filepath.Join(folder, name)) + end
		found = append(found, choice{label: strings.TrimSpace(whole), text: before + "@" + whole})
		if len(found) == maxChoices {
			break
		}
	}
	return found
}
