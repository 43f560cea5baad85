package cli

import (
	"bytes"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

const (
	columnGap = 2
	// minColumnWidth is the smallest width to which a column is shortened.
	minColumnWidth = 6
)

// A Table aligns rows of cells in columns. Each row is a line, and a tab ends each of its cells except the last. If a
// terminal is too narrow, the cells of the widest columns are shortened, so that a row stays on one line. The columns
// ID, KEY, NAME, CLIENT and REVISION are never shortened, and a time loses its date only. If the output is not a
// terminal, no cell is shortened.
type Table struct {
	w     io.Writer
	width int // of the terminal; 0 if w is not a terminal
	rows  bytes.Buffer
}

// NewTable returns a table that prints to w.
func NewTable(w io.Writer) *Table {
	return &Table{w: w, width: terminalWidth(w)}
}

// terminalWidth returns the width of a terminal in columns; 0 if w is not a terminal.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !IsTerminal(f) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Write adds rows. It never fails.
func (t *Table) Write(p []byte) (int, error) { return t.rows.Write(p) }

// Flush prints the rows.
func (t *Table) Flush() error {
	text := t.rows.String()
	t.rows.Reset()
	if t.width > 0 {
		text = fitRows(text, t.width)
	}
	tw := tabwriter.NewWriter(t.w, 0, 0, columnGap, ' ', 0)
	if _, err := io.WriteString(tw, text); err != nil {
		return err
	}
	return tw.Flush()
}

// fitRows returns the rows with the cells of the widest columns shortened, so that the rows fit the width if possible.
// The first row is the header.
func fitRows(text string, width int) string {
	var rows [][]string
	var widths, minima []int
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		rows = append(rows, cells)
		for i, cell := range cells {
			if i == len(widths) {
				widths, minima = append(widths, 0), append(minima, minColumnWidth)
			}
			widths[i] = max(widths[i], cellWidth(cell))
			switch {
			case len(rows) == 1 && isWholeColumn(cell):
				minima[i] = width
			case isTime(cell):
				minima[i] = max(minima[i], len(time.TimeOnly))
			}
		}
	}
	shrinkWidths(widths, minima, width)
	var out strings.Builder
	for _, cells := range rows {
		for i, cell := range cells {
			cells[i] = shortenCell(cell, widths[i])
		}
		out.WriteString(strings.Join(cells, "\t"))
		out.WriteByte('\n')
	}
	return out.String()
}

// isWholeColumn reports whether the cells below a header are never shortened, because a person copies them into a
// command.
func isWholeColumn(header string) bool {
	switch header {
	case "ID", "KEY", "NAME", "CLIENT", "REVISION":
		return true
	}
	return false
}

// shrinkWidths lowers the largest widths until the columns fit the total, or until every width is at its minimum.
func shrinkWidths(widths, minima []int, total int) {
	excess := columnGap*(len(widths)-1) - total
	for _, w := range widths {
		excess += w
	}
	for ; excess > 0; excess-- {
		widest := -1
		for i, w := range widths {
			if w > minima[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// cellWidth returns the width of a cell in terminal columns. A cell with escape sequences, such as a coloured score,
// counts as minColumnWidth, because such cells have short texts.
func cellWidth(cell string) int {
	if strings.ContainsRune(cell, '\x1b') {
		return minColumnWidth
	}
	return uniseg.StringWidth(cell)
}

// isTime reports whether a cell is a time as formatLocalTime returns it.
func isTime(cell string) bool {
	_, err := time.Parse(time.DateTime, cell)
	return err == nil
}

// shortenCell cuts a cell to a width. A path keeps its end; other text keeps its beginning.
func shortenCell(cell string, width int) string {
	if cellWidth(cell) <= width || strings.ContainsRune(cell, '\x1b') {
		return cell
	}
	if isTime(cell) {
		if monthAndTime := cell[len("2006-"):]; len(monthAndTime) <= width {
			return monthAndTime
		}
		return cell[len("2006-01-02 "):]
	}
	if strings.Contains(cell, "/") && !strings.ContainsAny(cell, " :") || strings.HasPrefix(cell, "~/") {
		excess := uniseg.StringWidth(cell) - (width - 1)
		return "…" + cell[clustersOfWidth(cell, excess):]
	}
	// A cluster that is two columns wide may not fit.
	end := clustersOfWidth(cell, width-1)
	if uniseg.StringWidth(cell[:end]) > width-1 {
		end = clustersOfWidth(cell, width-2)
	}
	return strings.TrimRight(cell[:end], " ") + "…"
}

// clustersOfWidth returns the length in bytes of the shortest prefix of text that is at least width columns wide. The
// prefix consists of whole grapheme clusters. If text is narrower, the result is the length of text.
func clustersOfWidth(text string, width int) int {
	rest, state := text, -1
	for taken := 0; taken < width && rest != ""; {
		var w int
		_, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		taken += w
	}
	return len(text) - len(rest)
}
