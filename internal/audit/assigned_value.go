package audit

import "strings"

// findAssignedValue reports whether a word that ends at i is assigned a value with "=" or ":", and where the value
// begins. Quotes, brackets and blanks may stand between: "name": …, env["NAME"] = …, NAME ?= …, name := …, name => ….
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

// skipBytes skips the bytes that are in those.
func (p *secretScanner) skipBytes(i int, those string) int {
	for i < len(p.s) && strings.IndexByte(those, p.s[i]) >= 0 {
		i++
	}
	return i
}

// valueExtent returns the part of the text to hide for the value that begins at i, and where the scan goes on. start is
// where its name begins.
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

// closesOuterQuote reports whether a quote closes a text that contains the name, as in read -p "Password: " answer. A
// quote of that kind is open in the line of the name, and no value follows.
func (p *secretScanner) closesOuterQuote(start, open, quote int) bool {
	if next := quote + 1; next < len(p.s) && strings.IndexByte(" \t\r\n,;:)}]", p.s[next]) < 0 {
		return false
	}
	n := p.quotes.countBefore(p.s, start, p.s[quote], quote-open)
	// If the name itself is quoted, its closing quote stands before the value.
	n += strings.Count(p.s[start:open], p.s[quote:quote+1])
	return n%2 == 1
}

// quoteCounts holds the number of quotes in a line up to a position, by the number of backslashes before each quote.
type quoteCounts struct {
	upTo, slashes int
	of            [8]struct{ double, single, back int }
}

// countBefore returns the number of quotes of a kind in the line before a place. Places must not decrease between
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

// quotedExtent returns the extent of a text in quotes. Its opening quote is at quote, after that many backslashes; the
// closing quote has as many. Without a closing quote the text was cut, and extends to the end.
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

// extentUntil returns the extent of a text that begins at i and ends before the mark.
func (p *secretScanner) extentUntil(i int, mark string) (from, to, end int) {
	if n := strings.Index(p.s[i:], mark); n >= 0 {
		return i, i + n, i + n + len(mark)
	}
	return i, len(p.s), len(p.s)
}

// bareValueEnd returns the end of a value without quotes that begins at i.
func (p *secretScanner) bareValueEnd(i int) int {
	for ; i < len(p.s); i++ {
		if strings.IndexByte(" \t\r\n\"'&;,<>)}]", p.s[i]) >= 0 {
			return i
		}
		if p.s[i] != '\\' {
			continue
		}
		next := p.skipBytes(i, `\`)
		// the end of a text within a text
		if next == len(p.s) || isQuote(p.s[next]) || strings.IndexByte("nrt\r\n", p.s[next]) >= 0 {
			return i
		}
		i = next // a\ b
	}
	return i
}

// yamlBlockExtent returns the extent of a value on its own lines, as in YAML: lines after "name: |" that are indented
// deeper than the name, or lines after "name:" that are not members. ok is false without such a value.
func (p *secretScanner) yamlBlockExtent(start, i int) (from, to int, ok bool) {
	head := i
	if i < len(p.s) && (p.s[i] == '|' || p.s[i] == '>') {
		head = p.skipBytes(p.skipBytes(i+1, "+-0123456789"), " \t")
	}
	end := ""
	for _, end = range [...]string{"\n", "\r\n", `\n`, `\r\n`, ""} { // escaped, if it stands in a text within a text
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

// isURLSignature reports whether the word there is the name of the signature in a signed URL. With such a URL anyone
// can do the signed action.
func (p *secretScanner) isURLSignature(start int, word string) bool {
	if start > 0 && strings.IndexByte("?&;=", p.s[start-1]) < 0 {
		return false
	}
	word = strings.ToLower(word)
	return word == "sig" || word == "signature" || strings.HasSuffix(word, "-signature")
}

// webhookAddresses are addresses whose remaining part is a secret: anyone who knows it may write.
var webhookAddresses = [...]struct{ host, path string }{
	{"hooks.slack.com", "/services/"}, {"hooks.slack.com", "/workflows/"}, {"hooks.slack.com", "/triggers/"},
	{"discord.com", "/api/webhooks/"}, {"discordapp.com", "/api/webhooks/"},
}

// webhookSecretStart returns where the secret part of an address begins whose host ends there; 0 if it has none.
func webhookSecretStart(s, host string, end int) int {
	for _, h := range webhookAddresses {
		if host == h.host && strings.HasPrefix(s[end:], h.path) {
			return end + len(h.path)
		}
	}
	return 0
}
