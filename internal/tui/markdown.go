package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxNesting is how many quotes and lists inside each other are drawn; deeper text is shown as it is written.
const maxNesting = 12

// A markdown renders Markdown as lines for a terminal. It uses goldmark's parser, without its extensions: they take
// longer to initialise than the program may. Tables are recognised by [splitBlocks].
type markdown struct {
	painter
	plain  bool // without boxes and symbols
	parser parser.Parser
}

func newMarkdown(p painter, plain bool) *markdown {
	return &markdown{painter: p, plain: plain, parser: parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))}
}

// render returns the lines of a text of blocks.
func (m *markdown) render(source string, width int) (lines []string) {
	s := newSplitter()
	blocks := append(s.add(source), s.end()...)
	for _, b := range blocks {
		lines = append(lines, m.block(b, width)...)
	}
	return lines
}

// block returns the lines of one block, with an empty line before it where blocks are apart.
func (m *markdown) block(b block, width int) (lines []string) {
	switch b.kind {
	case codeBlock:
		lines = m.code(b.text, b.info, b.first, width)
	case tableBlock:
		lines = m.table(b.text, width)
	default:
		source := []byte(clean(b.text))
		doc := m.parser.Parse(text.NewReader(source))
		lines = m.children(doc, source, width, 0)
	}
	if b.first && len(lines) > 0 {
		lines = append([]string{""}, lines...)
	}
	return lines
}

// children renders the blocks inside a node.
func (m *markdown) children(n ast.Node, source []byte, width, depth int) (lines []string) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.PreviousSibling() != nil && c.HasBlankPreviousLines() && len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, m.node(c, source, width, depth)...)
	}
	return lines
}

// node renders a block node.
func (m *markdown) node(n ast.Node, source []byte, width, depth int) []string {
	if depth > maxNesting || width < 8 {
		return m.wrap([]span{{string(n.Lines().Value(source)), plainStyle}}, width)
	}
	switch n := n.(type) {
	case *ast.Heading:
		spans := m.inline(n, source, headingStyle)
		if m.plain || !m.colour {
			spans = append([]span{{strings.Repeat("#", n.Level) + " ", plainStyle}}, spans...)
		}
		return m.wrap(spans, width)
	case *ast.Blockquote:
		bar := "│ "
		if m.plain {
			bar = "> "
		}
		return prefixed(m.children(n, source, width-2, depth+1), m.paint(dimStyle, bar), m.paint(dimStyle, bar))
	case *ast.List:
		return m.list(n, source, width, depth)
	case *ast.ThematicBreak:
		if m.plain {
			return []string{"---"}
		}
		return []string{m.paint(dimStyle, strings.Repeat("─", min(width, 40)))}
	case *ast.FencedCodeBlock:
		return m.code(string(n.Lines().Value(source)), string(n.Language(source)), true, width)
	case *ast.CodeBlock:
		return m.code(string(n.Lines().Value(source)), "", true, width)
	case *ast.HTMLBlock:
		return m.wrap([]span{{strings.TrimRight(string(n.Lines().Value(source)), "\n"), dimStyle}}, width)
	}
	return m.wrap(m.inline(n, source, plainStyle), width)
}

// list renders the items of a list.
func (m *markdown) list(n *ast.List, source []byte, width, depth int) (lines []string) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if m.plain {
			mark = "- "
		}
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		indent := strings.Repeat(" ", ansi.StringWidth(mark))
		inner := m.children(item, source, width-len(indent), depth+1)
		if len(inner) == 0 {
			inner = []string{""}
		}
		lines = append(lines, prefixed(inner, m.paint(codeStyle, mark), indent)...)
		if !n.IsTight && item.NextSibling() != nil {
			lines = append(lines, "")
		}
	}
	return lines
}

// code renders lines of code. first adds the language above them.
func (m *markdown) code(source, language string, first bool, width int) (lines []string) {
	source = strings.TrimSuffix(clean(source), "\n")
	if language = safetext.Line(language); first && language != "" {
		lines = append(lines, m.paint(dimStyle, cut("  "+language, width)))
	}
	styled := codeStyle
	diff := language == "diff" || language == "patch"
	for _, line := range strings.Split(source, "\n") {
		if diff {
			styled = diffStyle(line)
		}
		for _, part := range hardWrap(line, width-2) {
			lines = append(lines, "  "+m.paint(styled, part))
		}
	}
	return lines
}

// inline returns the text inside a node as spans.
func (m *markdown) inline(n ast.Node, source []byte, s style) (spans []span) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		spans = append(spans, m.inlineNode(c, source, s)...)
	}
	return spans
}

func (m *markdown) inlineNode(n ast.Node, source []byte, s style) []span {
	switch n := n.(type) {
	case *ast.Text:
		text := string(n.Value(source))
		if !n.IsRaw() {
			text = unescape(n.Value(source))
		}
		if n.SoftLineBreak() || n.HardLineBreak() {
			text += "\n"
		}
		return []span{{text, s}}
	case *ast.String:
		return []span{{unescape(n.Value), s}}
	case *ast.CodeSpan:
		return m.codeSpan(n, source, s)
	case *ast.Emphasis:
		if n.Level >= 2 {
			return m.inline(n, source, s.and(boldStyle))
		}
		return m.inline(n, source, s.and(italicStyle))
	case *ast.Link:
		return m.link(m.inline(n, source, s.and(linkStyle)), unescape(n.Destination))
	case *ast.Image: // never fetched: the address may carry text of the conversation
		return []span{{"[Image: ", s}, {plainText(m.inline(n, source, s)), s}, {"]", s},
			{" (" + unescape(n.Destination) + ")", dimStyle}}
	case *ast.AutoLink:
		return []span{{safetext.Line(string(n.URL(source))), s.and(linkStyle)}}
	case *ast.RawHTML:
		return []span{{string(n.Segments.Value(source)), s.and(dimStyle)}}
	}
	return m.inline(n, source, s)
}

// codeSpan returns the text between backquotes.
func (m *markdown) codeSpan(n ast.Node, source []byte, s style) []span {
	text := strings.ReplaceAll(plainText(m.inline(n, source, s)), "\n", " ")
	if !m.colour {
		text = "`" + text + "`"
	}
	return []span{{text, s.and(codeStyle)}}
}

// link returns the text of a link, followed by its address: a person must see where a link leads.
func (m *markdown) link(label []span, address string) []span {
	if address == "" || plainText(label) == address {
		return label
	}
	return append(label, span{" (" + address + ")", dimStyle})
}

// unescape replaces backslash escapes and character references, and makes the result safe: a reference may name any
// character.
func unescape(b []byte) string {
	return safetext.Line(string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(b)))))
}

func plainText(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.text)
	}
	return b.String()
}

// prefixed returns lines with a text before the first and one before the others.
func prefixed(lines []string, first, others string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = others + line
		if i == 0 {
			out[i] = first + line
		}
	}
	return out
}
