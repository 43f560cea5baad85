package workspace

import "strings"

// SplitMarkdown splits a Markdown file into its front matter and its blocks. The head and the blocks, joined, are the
// text byte for byte: a block ends with the empty lines after it. Blocks are separated by empty lines outside of fenced
// code.
func SplitMarkdown(text string) (head string, blocks []string) {
	head = frontMatter(text)
	rest := text[len(head):]
	begin, at := 0, 0
	var f fence
	blank, content := false, false
	for line := range strings.Lines(rest) {
		outside := f.mark == ""
		code := f.isCode(line)
		empty := !code && strings.TrimSpace(line) == ""
		if outside && blank && content && !empty {
			blocks = append(blocks, rest[begin:at])
			begin, content = at, false
		}
		blank = empty
		content = content || !empty
		at += len(line)
	}
	if begin < len(rest) {
		blocks = append(blocks, rest[begin:])
	}
	return head, blocks
}

// frontMatter returns the lines between "---" at the beginning of a file, with the empty lines after them, or "".
func frontMatter(text string) string {
	at, n := 0, 0
	for line := range strings.Lines(text) {
		n++
		at += len(line)
		bare := strings.TrimRight(line, "\r\n")
		if n == 1 && bare != "---" {
			return ""
		}
		if n > 1 && bare == "---" {
			for rest := range strings.Lines(text[at:]) {
				if strings.TrimSpace(rest) != "" {
					break
				}
				at += len(rest)
			}
			return text[:at]
		}
	}
	return ""
}

// TitleOf returns the title of a page: the first heading in its text, or the name of its file without the ending.
func TitleOf(text, file string) string {
	var f fence
	for line := range strings.Lines(text[len(frontMatter(text)):]) {
		if heading := strings.TrimLeft(line, "#"); !f.isCode(line) && len(heading) < len(line) && strings.HasPrefix(heading, " ") {
			if title := strings.TrimSpace(heading); checkLine("", title, maxTitle) == nil {
				return title
			}
		}
	}
	if i := strings.LastIndexAny(file, `/\`); i >= 0 {
		file = file[i+1:]
	}
	file = strings.TrimSuffix(file, ".md")
	if checkLine("", file, maxTitle) != nil {
		return "Untitled"
	}
	return file
}
