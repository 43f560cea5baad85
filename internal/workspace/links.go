package workspace

import "strings"

// A Link is a link in the text of a block: [[slug]] or [[shown text|slug]].
type Link struct {
	Text string `json:"text"`
	Slug string `json:"slug"`
}

// Links returns the links of a text, each slug once, in their order. Links in code are not links: a fenced block, and
// text between backquotes on one line.
func Links(text string) (links []Link) {
	seen := map[string]bool{}
	var f fence
	for line := range strings.Lines(text) {
		if f.isCode(line) {
			continue
		}
		for _, link := range linksOfLine(withoutCode(line)) {
			if !seen[link.Slug] {
				seen[link.Slug] = true
				links = append(links, link)
			}
		}
	}
	return links
}

// A fence finds the fenced code of a text, line by line. mark is what began the code; empty outside of code.
type fence struct{ mark string }

// isCode reports whether the next line belongs to fenced code. The lines with the marks do.
func (f *fence) isCode(line string) bool {
	mark := fenceMark(strings.TrimLeft(line, " "))
	switch {
	case f.mark == "":
		f.mark = mark
		return mark != ""
	case strings.HasPrefix(mark, f.mark) && strings.TrimSpace(line) == mark:
		f.mark = ""
	}
	return true
}

// fenceMark returns the mark with which a line begins or ends fenced code, or "".
func fenceMark(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// withoutCode returns a line without the texts between backquotes.
func withoutCode(line string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(line, '`')
		if i < 0 {
			return b.String() + line
		}
		rest := strings.TrimLeft(line[i:], "`")
		mark := line[i : len(line)-len(rest)]
		b.WriteString(line[:i])
		line = rest
		if end := strings.Index(rest, mark); end >= 0 {
			line = rest[end+len(mark):]
		}
	}
}

func linksOfLine(line string) (links []Link) {
	for {
		inside, rest, ok := strings.Cut(line, "]]")
		if !ok {
			return links
		}
		line = rest
		i := strings.LastIndex(inside, "[[")
		if i < 0 {
			continue
		}
		shown, slug, both := strings.Cut(inside[i+2:], "|")
		if !both {
			slug = shown
		}
		if slug, shown = strings.TrimSpace(slug), strings.TrimSpace(shown); checkSlug(slug) != nil {
			if slug = SlugOf(slug); slug == "page" {
				continue // nothing of it can be in a slug
			}
		}
		links = append(links, Link{Text: shown, Slug: slug})
	}
}
