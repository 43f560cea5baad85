package audit

import "strings"

// minPEMLine is the minimum length of a line of Base64 that is treated as a part of a PEM key. Lines usually have 64
// characters. The last line of a key may be shorter.
const minPEMLine = 40

// RedactPEMKeys replaces the content of PEM keys in a text. The function note returns the text that replaces n bytes.
// RedactPEMKeys removes only lines of Base64; line ends and blanks between them may be escaped. Because it removes
// nothing else, the author of a text cannot use it to hide other content.
func RedactPEMKeys(text string, note func(n int) string) string {
	begin := strings.Index(text, "-----BEGIN ")
	if begin < 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text[:begin])
	hidden := 0 // the number of bytes removed in the preceding lines
	tell := func() {
		if hidden > 0 {
			b.WriteString(note(hidden))
		}
		hidden = 0
	}
	for text = text[begin:]; text != ""; {
		end := 0
		for end < len(text) && isBase64Char(text[end]) {
			end++
		}
		next := end
		for next < len(text) && (!isBase64Char(text[next]) || next > end && text[next-1] == '\\' && text[next] == 'n') {
			next++
		}
		line, gap := text[:end], text[end:next]
		if end >= minPEMLine || end > 0 && hidden > 0 && strings.Contains(gap, "-----") {
			hidden += end
		} else {
			tell()
			b.WriteString(line)
		}
		if hidden == 0 || strings.Trim(gap, " \t\r\n\\n") != "" {
			tell()
			b.WriteString(gap)
		}
		text = text[next:]
	}
	tell()
	return b.String()
}

func isBase64Char(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '='
}
