package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// isDelimiterRow reports whether a line is the row below a table's header.
func isDelimiterRow(line string) bool {
	line = strings.TrimSpace(line)
	if !strings.Contains(line, "-") || !strings.Contains(line, "|") {
		return false
	}
	return strings.Trim(line, "|:- \t") == ""
}

// cells returns the cells of a row.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = strings.TrimSuffix(line, "|")
	}
	var all []string
	start := 0
	for i := range len(line) {
		if line[i] == '|' && (i == 0 || line[i-1] != '\\') {
			all = append(all, strings.TrimSpace(line[start:i]))
			start = i + 1
		}
	}
	return append(all, strings.TrimSpace(line[start:]))
}

// table renders the rows of a table. Columns that do not fit are narrowed, the widest first.
func (m *markdown) table(source string, width int) (lines []string) {
	var rows [][][]span
	columns := 0
	for i, line := range strings.Split(strings.TrimSpace(clean(source)), "\n") {
		if i == 0 {
			columns = len(cells(line))
		}
		if i == 1 {
			continue
		}
		row := make([][]span, columns)
		for j, cell := range cells(line) {
			if j < columns {
				row[j] = m.cell(cell, i == 0)
			}
		}
		rows = append(rows, row)
	}
	if m.plain || width < 6*columns {
		return m.tableAsLines(rows, width)
	}
	widths := columnWidths(rows, columns, width)
	for i, row := range rows {
		lines = append(lines, m.row(row, widths)...)
		if i == 0 {
			rule := make([]string, columns)
			for j, w := range widths {
				rule[j] = strings.Repeat("─", w)
			}
			lines = append(lines, m.paint(dimStyle, strings.Join(rule, "─┼─")))
		}
	}
	return lines
}

// cell parses the text of one cell.
func (m *markdown) cell(source string, header bool) []span {
	s := plainStyle
	if header {
		s = boldStyle
	}
	raw := []byte(strings.ReplaceAll(source, `\|`, "|"))
	doc := m.parser.Parse(text.NewReader(raw))
	if first := doc.FirstChild(); first != nil && first == doc.LastChild() && first.FirstChild() != nil &&
		first.FirstChild().Type() == ast.TypeInline {
		return m.inline(first, raw, s)
	}
	return []span{{source, s}}
}

// row renders one row, in as many lines as its highest cell has.
func (m *markdown) row(row [][]span, widths []int) []string {
	var parts [][]string
	height := 1
	for i, cell := range row {
		part := m.wrap(cell, widths[i])
		parts = append(parts, part)
		height = max(height, len(part))
	}
	lines := make([]string, height)
	for y := range lines {
		for x, part := range parts {
			text := ""
			if y < len(part) {
				text = part[y]
			}
			if x > 0 {
				lines[y] += m.paint(dimStyle, " │ ")
			}
			lines[y] += pad(text, widths[x])
		}
		lines[y] = strings.TrimRight(lines[y], " ")
	}
	return lines
}

// tableAsLines renders each cell on a line of its own, after the name of its column.
func (m *markdown) tableAsLines(rows [][][]span, width int) (lines []string) {
	for i, row := range rows {
		if i == 0 {
			continue
		}
		for j, cell := range row {
			name := append(append([]span{}, rows[0][j]...), span{": ", plainStyle})
			lines = append(lines, m.wrap(append(name, cell...), width)...)
		}
		if i < len(rows)-1 {
			lines = append(lines, "")
		}
	}
	return lines
}

// columnWidths returns the widths of columns that fit into width together with the lines between them.
func columnWidths(rows [][][]span, columns, width int) []int {
	widths := make([]int, columns)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(plainText(cell)), 1)
		}
	}
	room := width - 3*(columns-1)
	for {
		sum, widest := 0, 0
		for i, w := range widths {
			sum += w
			if w > widths[widest] {
				widest = i
			}
		}
		if sum <= room || widths[widest] <= 1 {
			return widths
		}
		widths[widest] -= max(1, min(sum-room, widths[widest]/2))
	}
}
