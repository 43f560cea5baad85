package tui

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// View returns the frame. It is built again only if something changed.
func (m *model) View() tea.View {
	if m.dirty {
		m.frame, m.dirty = m.build(), false
	}
	return m.frame
}

// build makes the frame: what is not finished, the pane, a question or the input box, and the status line.
func (m *model) build() tea.View {
	room := m.maxFrame()
	var bottom []string
	var cursor *tea.Cursor
	if d := m.shownDialog(); d != nil {
		bottom, cursor = m.dialogLines(d, room-2)
	} else {
		bottom, cursor = m.inputLines(room - 1)
	}
	bottom = append(bottom, m.statusLine())
	room -= len(bottom)
	var top []string
	if m.pane && room > 2 {
		top = m.t.pane(room * 2 / 3)
		room -= len(top)
	}
	if room > 0 {
		top = append(m.t.live(room), top...)
	}
	if cursor != nil {
		cursor.Y += len(top)
	}
	view := tea.NewView(strings.Join(append(top, bottom...), "\n"))
	view.Cursor = cursor
	return view
}

// brokenLines returns how many lines a terminal adds above the cursor when it becomes narrower, because it breaks the
// lines of the frame that are wider then. The renderer does not know, and would leave the first lines of the frame
// there.
func (m *model) brokenLines(width int) (added int64) {
	if width <= 0 || m.frame.Cursor == nil || !breaksLines(m.o.Terminal.Env) {
		return 0
	}
	lines := strings.Split(m.frame.Content, "\n")
	for _, line := range lines[:min(m.frame.Cursor.Y, len(lines))] {
		added += int64(max(0, ansi.StringWidth(line)-1) / width)
	}
	return added
}

// breaksLines reports whether a terminal is known to break lines when it becomes narrower. Others cut them off, as
// xterm does.
func breaksLines(env []string) bool {
	for _, name := range []string{"TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "ALACRITTY_WINDOW_ID", "WT_SESSION"} {
		if variable(env, name) != "" {
			return true
		}
	}
	return slices.Contains([]string{"iTerm.app", "Apple_Terminal", "ghostty", "vscode"}, variable(env, "TERM_PROGRAM"))
}

// inputLines returns the input box and the choices below it.
func (m *model) inputLines(limit int) ([]string, *tea.Cursor) {
	lines := []string{m.rule("")}
	mark := "> "
	if m.palette {
		mark = "/ "
	}
	text, x, y := m.input.view(m.t.width - 2)
	if over := len(text) - max(limit-2, 1); over > 0 { // a low terminal shows only the lines at the cursor
		from := min(max(0, y-(len(text)-over)+1), over)
		text, y = text[from:from+len(text)-over], y-from
	}
	lines = append(lines, prefixed(text, m.t.paint(promptStyle, mark), "  ")...)
	cursor := tea.NewCursor(x+2, y+1)
	cursor.Blink = false
	if m.chooser != nil {
		lines = append(lines, m.chooser.lines(m.t.painter, m.t.width, limit-len(lines))...)
	}
	if n := len(m.questions); n > 0 {
		lines = append(lines, m.t.paint(warnStyle, cut(fmt.Sprintf("%d waiting for an answer: /approvals", n), m.t.width)))
	}
	return lines, cursor
}

// rule returns a line across the screen with a title.
func (m *model) rule(title string) string {
	if title != "" {
		title = "── " + title + " "
	}
	title = ansi.Truncate(title, m.t.width, "…")
	return m.t.paint(dimStyle, title+strings.Repeat("─", max(0, m.t.width-ansi.StringWidth(title))))
}

// statusLine returns the state of the session.
func (m *model) statusLine() string {
	s := m.state
	var parts []string
	switch {
	case m.hint != "":
		parts = append(parts, m.hint)
	case m.running:
		text := "working"
		if s.Condensing {
			text = "condensing"
		}
		key := "Esc cancels"
		if m.awaited != "" {
			text, key = "waiting for "+clean(m.awaited), "Esc starts without"
		}
		if d := m.o.Now().Sub(m.began).Truncate(time.Second); d > 0 {
			text += " " + d.String()
		}
		parts = append(parts, text+" ("+key+")")
	}
	if s.Queued > 0 {
		parts = append(parts, fmt.Sprintf("%d queued", s.Queued))
	}
	mode := string(s.Mode)
	if s.Mode == agent.Bypass {
		mode = "BYPASS"
	}
	if text := labelText(s.Label); text != "" {
		parts = append(parts, text)
	}
	model := s.Model[strings.IndexByte(s.Model, '/')+1:]
	parts = append(parts, model, mode, tokensText(s.Tokens, s.Window), fmt.Sprintf("$%.4f", s.Cost))
	if dir, err := filepath.Abs(m.o.Dir); err == nil {
		parts = append(parts, filepath.Base(dir))
	}
	return m.t.paint(dimStyle, cut(strings.Join(parts, " · "), m.t.width))
}

// maxLabelName is how much of the name of a source the status line shows, in characters.
const maxLabelName = 24

// labelText returns the label of the session's run and its first source; empty for a run that has read only trusted
// text and text of the project.
func labelText(l *agent.RunLabel) string {
	if l == nil {
		return ""
	}
	var words []string
	if l.Integrity == "untrusted" {
		words = append(words, l.Integrity)
	}
	if l.Private {
		words = append(words, "private")
	}
	if len(words) == 0 {
		return ""
	}
	text := strings.Join(words, ", ")
	name := l.Name
	if l.Kind == "file" {
		name, _, _ = strings.Cut(name, ", written from ")
		name = filepath.Base(name)
	}
	if name != "" {
		name = strings.ReplaceAll(name, "·", " ") // it stands between the parts of the line
		text += ": " + safetext.Truncate(safetext.Line(name), maxLabelName, safetext.Runes, "…")
	}
	if l.More > 0 {
		text += fmt.Sprintf(", +%d", l.More)
	}
	return text
}

// tokensText returns how much of the window is used.
func tokensText(tokens int64, window int) string {
	text := shortNumber(tokens)
	if window > 0 {
		text = fmt.Sprintf("%s/%s (%d%%)", text, shortNumber(int64(window)), tokens*100/int64(window))
	}
	return text + " tokens"
}

func shortNumber(n int64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}
