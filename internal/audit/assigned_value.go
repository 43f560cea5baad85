package audit

import "strings"

// findAssignedValue reports whether an assignment with "=" or ":" follows the word that ends at i. It returns the
// index at which the assigned value begins. Quotes, brackets and blanks may precede the sign: "name": …, env["NAME"]
// = …, NAME ?= …, name := …, name => ….
func (p *secretScanner) findAssignedValue(i int) (at int, ok bool) {
	i = p.skipBytes(i, " \t\"'`\\]?+")
	at = p.skipBytes(i, "=:")
	if at == i {
		return at, false
	}
	if p.s[at-1] == '=' {
		at = p.skipBytes(at, ">")
	}
	return p.skipBytes(at, " \t"), true
}

// skipBytes returns the first index, starting at i, whose byte is not in set those.
func (p *secretScanner) skipBytes(i int, those string) int {
	for i < len(p.s) && strings.IndexByte(those, p.s[i]) >= 0 {
		i++
	}
	return i
}

// valueExtent returns the value to hide, p.s[from:to], and the index end at which the scan continues. i is the index
// of the value, which may begin with a quote. start is the index of the name to which the value is assigned.
func (p *secretScanner) valueExtent(start, i int) (from, to, end int) {
	open := i
	switch literal := strings.TrimLeft(p.s[i:min(i+2, len(p.s))], "$@bBrRuUfFL"); { // b"…", $'…'
	case literal != "" && isQuote(literal[0]):
		open = min(i+2, len(p.s)) - len(literal)
	case literal == "" && i+2 < len(p.s) && isQuote(p.s[i+2]):
		open = i + 2
	}
	quote := p.skipBytes(open, `\`)
	if quote >= len(p.s) || !isQuote(p.s[quote]) {
		i = p.skipBytes(i, `\`)
		end = p.bareValueEnd(i)
		return i, end, end
	}
	if p.closesOuterQuote(start, open, quote) {
		return quote, quote, quote + 1
	}
	return p.quotedExtent(quote, quote-open)
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// closesOuterQuote reports whether the quote character at index quote ends a text that contains the name, as in read
// -p "Password: " answer. In that case a quote of the same kind was opened earlier in the line, and no value follows
// the name. start is the index of the name. open is the index of the backslashes before the quote.
func (p *secretScanner) closesOuterQuote(start, open, quote int) bool {
	if next := quote + 1; next < len(p.s) && strings.IndexByte(" \t\r\n,;:)}]", p.s[next]) < 0 {
		return false
	}
	n := p.quotes.countBefore(p.s, start, p.s[quote], quote-open)
	// If the name itself is quoted, its closing quote is between start and the value, and is counted too.
	n += strings.Count(p.s[start:open], p.s[quote:quote+1])
	return n%2 == 1
}

// quoteCounts counts the quotes in the current line before index upTo. The entry of[n] counts the quotes that
// directly follow n backslashes.
type quoteCounts struct {
	upTo, slashes int
	of            [8]struct{ double, single, back int }
}

// countBefore returns the number of quotes of one kind between the beginning of the line and index place. It counts
// only quotes that directly follow the given number of backslashes. The argument place must not decrease between
// calls.
func (c *quoteCounts) countBefore(s string, place int, quote byte, slashes int) int {
	for ; c.upTo < place; c.upTo++ {
		n := &c.of[c.slashes%len(c.of)]
		switch s[c.upTo] {
		case '\\':
			c.slashes++
			continue
		case '"':
			n.double++
		case '\'':
			n.single++
		case '`':
			n.back++
		case '\n':
			*c = quoteCounts{upTo: c.upTo}
		}
		c.slashes = 0
	}
	switch n := c.of[slashes%len(c.of)]; quote {
	case '"':
		return n.double
	case '\'':
		return n.single
	default:
		return n.back
	}
}

// quotedExtent returns the value p.s[from:to] without its quotes, and the index end after the closing quote. The
// opening quote is at index quote, after the given number of backslashes. The closing quote follows the same number
// of backslashes. Without a closing quote, the value extends to the end of the text.
func (p *secretScanner) quotedExtent(quote, slashes int) (from, to, end int) {
	q := p.s[quote]
	from = quote + 1
	if slashes == 0 {
		switch opened := p.skipBytes(quote, string(q)) - quote; {
		case opened >= 3: // """…"""
			return p.extentUntil(quote+3, strings.Repeat(string(q), 3))
		case opened == 2:
			from, end = quote+2, p.bareValueEnd(quote+2)
			// ""…"", as in a CSV field
			if mark := string(q) + string(q); end > from && strings.Contains(p.s[from:], mark) {
				return p.extentUntil(from, mark)
			}
			return from, end, end
		}
	}
	for i := from; i < len(p.s); i++ {
		before := i
		i = p.skipBytes(i, `\`)
		if i == len(p.s) {
			break
		}
		if n := i - before; p.s[i] != q || n >= slashes && n%(2*(slashes+1)) != slashes {
			continue
		}
		if after := p.s[i+1:]; slashes == 0 && after != "" { // 'it''s', 'it'\''s', 'it'"'"'s'
			switch {
			case after[0] == q:
				i++
				continue
			case q == '\'' && strings.HasPrefix(after, `\''`):
				i += len(`\''`)
				continue
			case q == '\'' && strings.HasPrefix(after, `"'"'`):
				i += len(`"'"'`)
				continue
			case isWordChar(after[0]): // 'abc'def
				end = p.bareValueEnd(i + 1)
				return from, end, end
			}
		}
		return from, max(before, i-slashes), i + 1
	}
	return from, len(p.s), len(p.s)
}

// extentUntil returns the value that begins at i and ends before the next occurrence of mark, and the index end after
// mark. Without an occurrence, the value extends to the end of the text.
func (p *secretScanner) extentUntil(i int, mark string) (from, to, end int) {
	if n := strings.Index(p.s[i:], mark); n >= 0 {
		return i, i + n, i + n + len(mark)
	}
	return i, len(p.s), len(p.s)
}

// bareValueEnd returns the end of a value without quotes that begins at i. The value ends at a blank, a line end, or
// a punctuation character.
func (p *secretScanner) bareValueEnd(i int) int {
	for ; i < len(p.s); i++ {
		if strings.IndexByte(" \t\r\n\"'&;,<>)}]", p.s[i]) >= 0 {
			return i
		}
		if p.s[i] != '\\' {
			continue
		}
		next := p.skipBytes(i, `\`)
		// an escaped quote or line end: the end of an inner string literal
		if next == len(p.s) || isQuote(p.s[next]) || strings.IndexByte("nrt\r\n", p.s[next]) >= 0 {
			return i
		}
		i = next // a\ b
	}
	return i
}

// yamlBlockExtent returns the extent of a value on the lines after its name, as in YAML. All lines of the value must
// be indented deeper than the name. The name must be followed by ":", and optionally by "|" or ">". Without "|" or
// ">", the first line of the value must not contain a colon. If the text does not have this form, ok is false.
func (p *secretScanner) yamlBlockExtent(start, i int) (from, to int, ok bool) {
	head := i
	if i < len(p.s) && (p.s[i] == '|' || p.s[i] == '>') {
		head = p.skipBytes(p.skipBytes(i+1, "+-0123456789"), " \t")
	}
	end := ""
	for _, end = range [...]string{"\n", "\r\n", `\n`, `\r\n`, ""} { // the escaped forms occur in inner string literals
		if strings.HasPrefix(p.s[head:], end) {
			break
		}
	}
	if end == "" || head == i && !strings.HasSuffix(strings.TrimRight(p.s[:i], " \t"), ":") {
		return 0, 0, false
	}
	line := 0
	if n := strings.LastIndex(p.s[:start], end); n >= 0 {
		line = n + len(end)
	}
	name := min(start, p.skipBytes(line, " \t-\"'"))
	first := true
	for at := head + len(end); at < len(p.s); {
		next := len(p.s)
		if n := strings.Index(p.s[at:], end); n >= 0 {
			next = at + n
		}
		if text := p.skipBytes(at, " \t"); text < next {
			if text-at <= name-line {
				break
			}
			if first {
				if from = text; head == i && (name < start || strings.Contains(p.s[text:next], ":")) {
					return 0, 0, false
				}
			}
			to, first = next, false
		}
		at = next + len(end)
	}
	return from, to, !first
}

// isURLSignature reports whether the word at start is the parameter with the signature in a signed URL, such as
// "sig". The value of this parameter is a secret: every client that knows the URL can perform the signed action.
func (p *secretScanner) isURLSignature(start int, word string) bool {
	if start > 0 && strings.IndexByte("?&;=", p.s[start-1]) < 0 {
		return false
	}
	word = strings.ToLower(word)
	return word == "sig" || word == "signature" || strings.HasSuffix(word, "-signature")
}

// webhookAddresses lists the hosts and path prefixes of webhook URLs. The rest of such a URL is a secret: any client
// that knows it may post messages.
var webhookAddresses = [...]struct{ host, path string }{
	{"hooks.slack.com", "/services/"}, {"hooks.slack.com", "/workflows/"}, {"hooks.slack.com", "/triggers/"},
	{"discord.com", "/api/webhooks/"}, {"discordapp.com", "/api/webhooks/"},
}

// webhookSecretStart returns the index at which the secret part of a webhook URL begins, or 0 if the URL is not a
// webhook. host is the host of the URL, which ends at index end of s.
func webhookSecretStart(s, host string, end int) int {
	for _, h := range webhookAddresses {
		if host == h.host && strings.HasPrefix(s[end:], h.path) {
			return end + len(h.path)
		}
	}
	return 0
}
