package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A style is a set of SGR parameters, such as "1;36"; empty for plain text.
type style string

// The styles. They use the terminal's own palette, so that a person's colours stay.
const (
	plainStyle   style = ""
	boldStyle    style = "1"
	dimStyle     style = "2"
	italicStyle  style = "3"
	headingStyle style = "1;36"
	codeStyle    style = "36"
	linkStyle    style = "4;34"
	okStyle      style = "32"
	badStyle     style = "31"
	warnStyle    style = "1;33"
	promptStyle  style = "1;34"
	chosenStyle  style = "7"
)

// A painter writes styled text. The zero value writes text without styles.
type painter struct{ colour bool }

// paint returns text between the escape sequences of a style.
func (p painter) paint(s style, text string) string {
	if !p.colour || s == plainStyle || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// A span is a piece of text with one style. A line feed in the text begins a new line.
type span struct {
	text  string
	style style
}

// and returns a style that has the parameters of both.
func (s style) and(t style) style {
	switch {
	case s == plainStyle || s == t:
		return t
	case t == plainStyle:
		return s
	}
	return s + ";" + t
}

// wrap breaks spans into lines of at most width columns, between words where possible.
func (p painter) wrap(spans []span, width int) []string {
	w := wrapper{painter: p, width: max(width, 1)}
	for _, s := range spans {
		for i, line := range strings.Split(s.text, "\n") {
			if i > 0 {
				w.breakLine()
			}
			w.add(line, s.style)
		}
	}
	w.endWord()
	w.breakLine()
	return w.lines
}

// A wrapper builds lines. word holds the pieces of the word that is not placed yet.
type wrapper struct {
	painter
	width int

	lines     []string
	line      []span
	used      int
	word      []span
	wordWidth int
	gap       int
	gapStyle  style
}

// add adds text without line feeds.
func (w *wrapper) add(text string, s style) {
	for text != "" {
		n := strings.IndexByte(text, ' ')
		switch {
		case n == 0:
			w.endWord()
			w.gap++
			w.gapStyle = s
			text = text[1:]
		case n < 0:
			w.word = append(w.word, span{text, s})
			w.wordWidth += ansi.StringWidth(text)
			text = ""
		default:
			w.word = append(w.word, span{text[:n], s})
			w.wordWidth += ansi.StringWidth(text[:n])
			text = text[n:]
		}
	}
}

// endWord places the word on this line, or on the next.
func (w *wrapper) endWord() {
	if len(w.word) == 0 {
		return
	}
	if w.used > 0 && w.used+w.gap+w.wordWidth > w.width {
		w.flushLine()
	} else if w.gap > 0 && w.used+w.gap <= w.width {
		w.put(span{strings.Repeat(" ", w.gap), w.gapStyle}, w.gap)
	}
	w.gap = 0
	for _, piece := range w.word {
		w.place(piece)
	}
	w.word, w.wordWidth = w.word[:0], 0
}

// place puts a piece of a word on the line, and breaks it where the line ends.
func (w *wrapper) place(piece span) {
	for piece.text != "" {
		room := w.width - w.used
		width := ansi.StringWidth(piece.text)
		if width <= room {
			w.put(piece, width)
			return
		}
		head := ansi.Truncate(piece.text, room, "")
		if head == "" {
			if w.used == 0 { // one character is wider than the line
				w.put(span{"?", piece.style}, 1)
				return
			}
			w.flushLine()
			continue
		}
		w.put(span{head, piece.style}, ansi.StringWidth(head))
		w.flushLine()
		piece.text = piece.text[len(head):]
	}
}

// put appends to the line; neighbours of one style become one piece.
func (w *wrapper) put(s span, width int) {
	if n := len(w.line); n > 0 && w.line[n-1].style == s.style {
		w.line[n-1].text += s.text
	} else {
		w.line = append(w.line, s)
	}
	w.used += width
}

func (w *wrapper) breakLine() {
	w.endWord()
	w.flushLine()
}

func (w *wrapper) flushLine() {
	var b strings.Builder
	for _, s := range w.line {
		b.WriteString(w.paint(s.style, s.text))
	}
	w.lines = append(w.lines, b.String())
	w.line, w.used, w.gap = w.line[:0], 0, 0
}

// hardWrap breaks a line of text into lines of at most width columns, at any character.
func hardWrap(line string, width int) []string {
	width = max(width, 1)
	if len(line) <= width { // no character is wider than its bytes
		return []string{line}
	}
	var lines []string
	for ansi.StringWidth(line) > width {
		head := ansi.Truncate(line, width, "")
		if head == "" {
			head = line[:1]
		}
		lines = append(lines, head)
		line = line[len(head):]
	}
	return append(lines, line)
}

// cut returns text on one line of at most width columns.
func cut(text string, width int) string {
	const enough = 4
	if limit := enough * max(width, 1) * enough; len(text) > limit {
		text = safetext.Truncate(text, limit, safetext.Bytes, "…")
	}
	return ansi.Truncate(safetext.Line(text), max(width, 1), "…")
}

// clean makes foreign text of several lines safe, and replaces tabs.
func clean(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.ReplaceAll(safetext.Text(text), "\t", "    ")
}

// pad fills text with spaces to width columns.
func pad(text string, width int) string {
	if n := width - ansi.StringWidth(text); n > 0 {
		return text + strings.Repeat(" ", n)
	}
	return text
}
