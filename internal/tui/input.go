package tui

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

const (
	// maxInputLines is how many lines of the input are shown.
	maxInputLines = 8
	// A paste with more lines or bytes is shown as one placeholder.
	maxPasteLines = 20
	maxPasteBytes = 4 << 10
)

// An editor is the input box: text of several lines with a cursor.
type editor struct {
	text   []rune
	cursor int
	// pastes holds the texts of the placeholders.
	pastes map[string]string
}

// insert adds text at the cursor. Invisible characters are left out: a person could not see what is sent.
func (e *editor) insert(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	text = strings.ReplaceAll(text, "\t", "    ")
	var runes []rune
	for _, r := range text {
		// The joiners and the variation selector are parts of letters and of emoji.
		if r == '\n' || safetext.Visible(r) || r == 0x200c || r == 0x200d || r == 0xfe0f {
			runes = append(runes, r)
		}
	}
	e.text = slices.Insert(e.text, e.cursor, runes...)
	e.cursor += len(runes)
}

// paste adds a pasted text; a long one as a placeholder.
func (e *editor) paste(text string) {
	lines := strings.Count(text, "\n") + 1
	if lines <= maxPasteLines && len(text) <= maxPasteBytes {
		e.insert(text)
		return
	}
	if e.pastes == nil {
		e.pastes = map[string]string{}
	}
	var whole editor
	whole.insert(text)
	name := fmt.Sprintf("[Pasted text %d: %d lines]", len(e.pastes)+1, lines)
	e.pastes[name] = string(whole.text)
	e.insert(name)
}

// value returns the text with the pasted texts in place.
func (e *editor) value() string {
	text := string(e.text)
	for name, paste := range e.pastes {
		text = strings.ReplaceAll(text, name, paste)
	}
	return text
}

// set replaces the text.
func (e *editor) set(text string) {
	e.text, e.cursor, e.pastes = nil, 0, nil
	e.insert(text)
}

// press handles a key and reports whether it has a meaning here.
func (e *editor) press(key string) bool {
	switch key {
	case "left", "ctrl+b":
		e.move(-1)
	case "right", "ctrl+f":
		e.move(1)
	case "ctrl+left", "alt+left", "alt+b":
		e.cursor = e.wordStart()
	case "ctrl+right", "alt+right", "alt+f":
		e.cursor = e.wordEnd()
	case "home", "ctrl+a":
		e.cursor = e.lineStart()
	case "end", "ctrl+e":
		e.cursor = e.lineEnd()
	case "backspace", "ctrl+h":
		end := e.cursor
		e.move(-1)
		e.text = slices.Delete(e.text, e.cursor, end)
	case "delete":
		start := e.cursor
		e.move(1)
		e.text, e.cursor = slices.Delete(e.text, start, e.cursor), start
	case "ctrl+w", "alt+backspace":
		start := e.wordStart()
		e.text, e.cursor = slices.Delete(e.text, start, e.cursor), start
	case "ctrl+u":
		start := e.lineStart()
		e.text, e.cursor = slices.Delete(e.text, start, e.cursor), start
	case "ctrl+k":
		e.text = slices.Delete(e.text, e.cursor, e.lineEnd())
	default:
		return false
	}
	return true
}

// move moves the cursor by one character; marks belong to the character before them.
func (e *editor) move(by int) {
	at := e.cursor + by
	for at > 0 && at < len(e.text) && e.text[at] != '\n' && ansi.StringWidth(string(e.text[at])) == 0 {
		at += by
	}
	e.cursor = min(max(at, 0), len(e.text))
}

func (e *editor) wordStart() int {
	at := e.cursor
	for at > 0 && unicode.IsSpace(e.text[at-1]) {
		at--
	}
	for at > 0 && !unicode.IsSpace(e.text[at-1]) {
		at--
	}
	return at
}

func (e *editor) wordEnd() int {
	at := e.cursor
	for at < len(e.text) && unicode.IsSpace(e.text[at]) {
		at++
	}
	for at < len(e.text) && !unicode.IsSpace(e.text[at]) {
		at++
	}
	return at
}

func (e *editor) lineStart() int {
	at := e.cursor
	for at > 0 && e.text[at-1] != '\n' {
		at--
	}
	return at
}

func (e *editor) lineEnd() int {
	at := e.cursor
	for at < len(e.text) && e.text[at] != '\n' {
		at++
	}
	return at
}

// moveLine moves the cursor to the line above or below, and reports whether there is one.
func (e *editor) moveLine(by int) bool {
	start, column := e.lineStart(), e.cursor-e.lineStart()
	if by < 0 {
		if start == 0 {
			return false
		}
		e.cursor = start - 1
		e.cursor = min(e.lineStart()+column, start-1)
		return true
	}
	end := e.lineEnd()
	if end == len(e.text) {
		return false
	}
	e.cursor = end + 1
	e.cursor = min(end+1+column, e.lineEnd())
	return true
}

// view returns the shown lines, and the position of the cursor in them.
func (e *editor) view(width int) (lines []string, x, y int) {
	width = max(width, 2)
	line, used := []rune{}, 0
	place := func() { x, y = used, len(lines) }
	for i, r := range e.text {
		w := ansi.StringWidth(string(r))
		if r != '\n' && used+w > width {
			lines, line, used = append(lines, string(line)), nil, 0
		}
		if i == e.cursor {
			place()
		}
		if r == '\n' {
			lines, line, used = append(lines, string(line)), nil, 0
			continue
		}
		line, used = append(line, r), used+w
	}
	if e.cursor == len(e.text) {
		if used >= width {
			lines, line, used = append(lines, string(line)), nil, 0
		}
		place()
	}
	lines = append(lines, string(line))
	from := min(max(0, y-maxInputLines+1), max(0, len(lines)-maxInputLines))
	lines = lines[from:min(len(lines), from+maxInputLines)]
	return lines, x, y - from
}
