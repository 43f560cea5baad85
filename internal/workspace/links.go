package workspace

import "strings"

// A Link is a link in the text of a block: [[slug]] or [[shown text|slug]].
type Link struct{ Text, Slug string }

// Links returns the links of a text, each slug once, in their order. Links in code are not links: a fenced block, and
// text between backquotes on one line.
func Links(text string) (links []Link) {
	seen := map[string]bool{}
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimLeft(line, " ")
		if mark := fenceOf(trimmed); mark != "" && (fence == "" || strings.HasPrefix(mark, fence)) {
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue
		}
		for _, link := range linksOfLine(line) {
			if !seen[link.Slug] {
				seen[link.Slug] = true
				links = append(links, link)
			}
		}
	}
	return links
}

// fenceOf returns the mark with which a line begins or ends fenced code, or "".
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

func linksOfLine(line string) (links []Link) {
	for line != "" {
		i := strings.IndexAny(line, "`[")
		if i < 0 {
			return links
		}
		line = line[i:]
		if line[0] == '`' {
			n := len(line) - len(strings.TrimLeft(line, "`"))
			mark := line[:n]
			line = line[n:]
			if end := strings.Index(line, mark); end >= 0 {
				line = line[end+n:]
			}
			continue
		}
		inside, ok := strings.CutPrefix(line, "[[")
		end := strings.Index(inside, "]]")
		if !ok || end < 0 {
			line = line[1:]
			continue
		}
		shown, slug, both := strings.Cut(inside[:end], "|")
		if !both {
			slug = shown
		}
		if slug, shown = strings.TrimSpace(slug), strings.TrimSpace(shown); checkSlug(slug) == nil {
			links = append(links, Link{Text: shown, Slug: slug})
		} else if other := SlugOf(slug); slug != "" && other != "page" {
			links = append(links, Link{Text: shown, Slug: other})
		}
		line = inside[end+2:]
	}
	return links
}
