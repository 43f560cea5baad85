//go:build peers

package interop

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A look is how a character of a terminal is drawn. The colours are those of the palette, plus one; 0 is the default.
type look struct {
	fore, back                            int
	bold, dim, italic, underline, swapped bool
}

// A cell is a character of a terminal.
type cell struct {
	text string
	look look
}

// A frameRow is a line of a terminal, without blank cells at its end.
type frameRow []cell

// A frame is what a terminal shows.
type frame []frameRow

// parseFrame reads the output of "tmux capture-pane -e".
func parseFrame(text string) (f frame) {
	var now look
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		var r frameRow
		for line != "" {
			if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
				if end := strings.IndexByte(rest, 'm'); end >= 0 {
					now = now.with(rest[:end])
					line = rest[end+1:]
					continue
				}
			}
			_, n := utf8.DecodeRuneInString(line)
			r = append(r, cell{line[:n], now})
			line = line[n:]
		}
		f = append(f, r.trimmed())
	}
	return f
}

// with returns a look after the parameters of an SGR sequence.
func (l look) with(parameters string) look {
	words := strings.Split(parameters, ";")
	for i := 0; i < len(words); i++ {
		n, _ := strconv.Atoi(words[i]) // an empty parameter is 0
		switch {
		case n == 0:
			l = look{}
		case n == 1:
			l.bold = true
		case n == 2:
			l.dim = true
		case n == 3:
			l.italic = true
		case n == 4:
			l.underline = true
		case n == 7:
			l.swapped = true
		case n >= 30 && n <= 37:
			l.fore = n - 30 + 1
		case n >= 40 && n <= 47:
			l.back = n - 40 + 1
		case n >= 90 && n <= 97:
			l.fore = n - 90 + 9
		case (n == 38 || n == 48) && i+2 < len(words) && words[i+1] == "5":
			colour, _ := strconv.Atoi(words[i+2])
			if i += 2; n == 38 {
				l.fore = colour + 1
			} else {
				l.back = colour + 1
			}
		case n == 39:
			l.fore = 0
		case n == 49:
			l.back = 0
		}
	}
	return l
}

// String returns the SGR sequence of a look.
func (l look) String() string {
	words := []string{"0"}
	for _, attribute := range []struct {
		set  bool
		word string
	}{{l.bold, "1"}, {l.dim, "2"}, {l.italic, "3"}, {l.underline, "4"}, {l.swapped, "7"}} {
		if attribute.set {
			words = append(words, attribute.word)
		}
	}
	if l.fore > 0 {
		words = append(words, "38;5;"+strconv.Itoa(l.fore-1))
	}
	if l.back > 0 {
		words = append(words, "48;5;"+strconv.Itoa(l.back-1))
	}
	return "\x1b[" + strings.Join(words, ";") + "m"
}

func (r frameRow) trimmed() frameRow {
	for n := len(r); n > 0 && r[n-1].text == " " && r[n-1].look.back == 0 && !r[n-1].look.swapped; n-- {
		r = r[:n-1]
	}
	return r
}

func (r frameRow) text() string {
	var b strings.Builder
	for _, c := range r {
		b.WriteString(c.text)
	}
	return b.String()
}

// replaceAll replaces what a pattern matches. The new text looks like the first character of the old one.
func (r frameRow) replaceAll(pattern *regexp.Regexp, by string) (out frameRow) {
	text := r.text()
	at := map[int]int{len(text): len(r)} // the cell of a byte
	for i, n := 0, 0; i < len(r); i++ {
		at[n] = i
		n += len(r[i].text)
	}
	end := 0
	for _, m := range pattern.FindAllStringSubmatchIndex(text, -1) {
		by := by
		if rest, ok := strings.CutPrefix(by, "$1"); ok { // the beginning stays as it looks
			m[0], by = m[3], rest
		}
		out = append(out, r[at[end]:at[m[0]]]...)
		for _, c := range string(pattern.ExpandString(nil, by, text, m)) {
			out = append(out, cell{string(c), r[at[m[0]]].look})
		}
		end = m[1]
	}
	return append(out, r[at[end]:]...).trimmed()
}

// replace replaces a text that may go on in the next lines, by one of the same length.
func (f frame) replace(old, by string) {
	var all strings.Builder
	var cells []*cell
	for _, r := range f {
		indented := true
		for i := range r {
			if indented = indented && r[i].text == " "; !indented {
				cells = append(cells, &r[i])
				all.WriteString(firstByte(r[i].text))
			}
		}
	}
	if at := strings.Index(all.String(), old); at >= 0 && len(old) == len(by) {
		for i := range by {
			cells[at+i].text = by[i : i+1]
		}
	}
}

// firstByte returns a character as one byte, so that a byte of a text is a cell.
func firstByte(c string) string {
	if len(c) > 1 {
		return "\x00"
	}
	return c
}

// find returns a text that may go on in the next lines: from the beginning until a blank.
func (f frame) find(beginning string) string {
	var b strings.Builder
	for _, r := range f {
		line := strings.TrimLeft(r.text(), " ")
		if at := strings.Index(line, beginning); b.Len() == 0 && at >= 0 {
			line = line[at:]
		} else if b.Len() == 0 {
			continue
		}
		word, _, ended := strings.Cut(line, " ")
		if b.WriteString(word); ended || line == "" {
			break
		}
	}
	return b.String()
}

// String returns a frame as a terminal shows it when it is printed.
func (f frame) String() string {
	var b strings.Builder
	for _, r := range f {
		var now look
		for _, c := range r {
			if c.look != now {
				b.WriteString(c.look.String())
				now = c.look
			}
			b.WriteString(c.text)
		}
		if now != (look{}) {
			b.WriteString("\x1b[0m")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// The measures of a picture in pixels.
const (
	cellWidth  = 8.4
	cellHeight = 19
	fontSize   = 14
	edge       = 18
	titleBar   = 36
)

// palette are the 16 colours of the picture, on a dark ground.
var palette = [16]string{"#484f58", "#ff7b72", "#7ee787", "#f2cc60", "#79c0ff", "#d2a8ff", "#76e3ea", "#d0d7de",
	"#8b949e", "#ffa198", "#a5f3b0", "#f8e08e", "#a5d6ff", "#e2c5ff", "#b3f0ff", "#ffffff"}

const (
	paper = "#161b22"
	ink   = "#e6edf3"
	faint = "#9da7b3"
)

// picture returns a frame as an SVG image: a window with a title, without scripts and without fonts of its own.
func (f frame) picture(title string, columns int) string {
	for len(f) > 0 && len(f[0]) == 0 {
		f = f[1:]
	}
	for len(f) > 0 && len(f[len(f)-1]) == 0 {
		f = f[:len(f)-1]
	}
	width := float64(columns)*cellWidth + 2*edge
	height := float64(len(f)*cellHeight + titleBar + 2*edge)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" `+
		`font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="%d">`+"\n", width, height, width,
		height, fontSize)
	fmt.Fprintf(&b, "<title>%s</title>\n", escaped(title))
	fmt.Fprintf(&b, `<rect x="0.5" y="0.5" width="%.0f" height="%.0f" rx="10" fill="%s" stroke="#30363d"/>`+"\n", width-1, height-1,
		paper)
	for i, colour := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="18" r="6" fill="%s"/>`+"\n", 20+i*20, colour)
	}
	fmt.Fprintf(&b, `<text x="%.0f" y="23" fill="%s" text-anchor="middle">%s</text>`+"\n", width/2, faint, escaped(title))
	for i, r := range f {
		r.draw(&b, edge, float64(titleBar+edge+i*cellHeight))
	}
	return b.String() + "</svg>\n"
}

// draw draws a row, whose upper left corner is at x and y. Characters that look the same are one text.
func (r frameRow) draw(b *strings.Builder, x, y float64) {
	for len(r) > 0 {
		n := 1
		line := r[0].text == "─"
		for n < len(r) && r[n].look == r[0].look && (r[n].text == "─") == line {
			n++
		}
		text := r[:n].text()
		width := float64(ansi.StringWidth(text)) * cellWidth
		fore, back := r[0].look.colours()
		if back != paper {
			fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y, width, cellHeight, back)
		}
		left := strings.TrimLeft(text, " ")
		begin := float64(len(text)-len(left)) * cellWidth
		left = strings.TrimRight(left, " ")
		switch {
		case line:
			fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="1" fill="%s"/>`+"\n", x, y+cellHeight/2, width, fore)
		case left != "":
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve" fill="%s"%s>%s</text>`+
				"\n", x+begin, y+14, float64(ansi.StringWidth(left))*cellWidth, fore, r[0].look.attributes(), escaped(left))
		}
		x += width
		r = r[n:]
	}
}

// colours returns the colours of a look.
func (l look) colours() (fore, back string) {
	colour := func(n int, otherwise string) string {
		if n >= 1 && n <= len(palette) {
			return palette[n-1]
		}
		return otherwise
	}
	fore, back = colour(l.fore, ink), colour(l.back, paper)
	if l.dim && l.fore == 0 {
		fore = faint
	}
	if l.swapped {
		fore, back = back, fore
	}
	return fore, back
}

func (l look) attributes() (text string) {
	if l.bold {
		text += ` font-weight="bold"`
	}
	if l.italic {
		text += ` font-style="italic"`
	}
	if l.underline {
		text += ` text-decoration="underline"`
	}
	return text
}

func escaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
