package audit

import "strings"

// findAssignedValue reports whether a word that ends at i is given a value with "=" or ":", and where what it is given
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

// skipBytes passes over the bytes that are among those.
func (p *secretScanner) skipBytes(i int, those string) int {
	for i < len(p.s) && strings.IndexByte(those, p.s[i]) >= 0 {
		i++
	}
	return i
}

// valueExtent says what of the text the value takes that begins at i: what is to be hidden of it, and where the text
// goes on. start is where its name begins.
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

// closesOuterQuote reports whether a quote ends what its name stands in, as in read -p "Password: " answer: one like it
// is open in the name's line, and what follows begins no value.
func (p *secretScanner) closesOuterQuote(start, open, quote int) bool {
	if next := quote + 1; next < len(p.s) && strings.IndexByte(" \t\r\n,;:)}]", p.s[next]) < 0 {
		return false
	}
	n := p.quotes.countBefore(p.s, start, p.s[quote], quote-open)
	// Of two quotes, those of the name's own end are before its value.
	n += strings.Count(p.s[start:open], p.s[quote:quote+1])
	return n%2 == 1
}

// A quoteCounts has how many quotes a line has up to a place, by how many backslashes stand before them.
type quoteCounts struct {
	upTo, slashes int
	of            [8]struct{ double, single, back int }
}

// countBefore returns how many quotes of a kind the line has before a place, which is none before the one asked for
// last.
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

// quotedExtent says what a text in quotes takes that begins with the quote there, before which so many backslashes
// stand: as many are before the quote that ends it. Where none does, it takes the rest: the end was cut off.
func (p *secretScanner) quotedExtent(quote, slashes int) (from, to, end int) {
	q := p.s[quote]
	from = quote + 1
	if slashes == 0 {
		switch opened := p.skipBytes(quote, string(q)) - quote; {
		case opened >= 3: // """…"""
			return p.extentUntil(quote+3, strings.Repeat(string(q), 3))
		case opened == 2:
			from, end = quote+2, p.bareValueEnd(quote+2)
			// ""…"", as within a row of CSV
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

// extentUntil says what a text takes that begins at i and ends before that mark.
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
		// of a text within a text
		if next == len(p.s) || isQuote(p.s[next]) || strings.IndexByte("nrt\r\n", p.s[next]) >= 0 {
			return i
		}
		i = next // a\ b
	}
	return i
}

// yamlBlockExtent says what the lines take that are a value, as in YAML: those after "name: |" that are farther in
// than the name, or after "name:" where they are no members. ok says whether there are such.
func (p *secretScanner) yamlBlockExtent(start, i int) (from, to int, ok bool) {
	head := i
	if i < len(p.s) && (p.s[i] == '|' || p.s[i] == '>') {
		head = p.skipBytes(p.skipBytes(i+1, "+-0123456789"), " \t")
	}
	end := ""
	for _, end = range [...]string{"\n", "\r\n", `\n`, `\r\n`, ""} { // written out in a text within a text
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

// isURLSignature reports whether a word that begins there is the name of what signs a URL: who has the URL, and the
// signature with it, may do what it is for.
func (p *secretScanner) isURLSignature(start int, word string) bool {
	if start > 0 && strings.IndexByte("?&;=", p.s[start-1]) < 0 {
		return false
	}
	word = strings.ToLower(word)
	return word == "sig" || word == "signature" || strings.HasSuffix(word, "-signature")
}

// webhookAddresses are the addresses behind which whoever knows the rest may write.
var webhookAddresses = [...]struct{ host, path string }{
	{"hooks.slack.com", "/services/"}, {"hooks.slack.com", "/workflows/"}, {"hooks.slack.com", "/triggers/"},
	{"discord.com", "/api/webhooks/"}, {"discordapp.com", "/api/webhooks/"},
}

// webhookSecretStart returns where the secret part of an address begins whose host ends there; 0 where it has none.
func webhookSecretStart(s, host string, end int) int {
	for _, h := range webhookAddresses {
		if host == h.host && strings.HasPrefix(s[end:], h.path) {
			return end + len(h.path)
		}
	}
	return 0
}
