package label

import (
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// maxTemplate bounds a template, MaxURI what it is compared with, in bytes: a server writes the one and a caller the other,
// and neither may cost more than a moment.
const (
	maxTemplate = 2 << 10
	MaxURI      = 16 << 10
)

// A Template is a URI template (RFC 6570), read backwards: which URIs may have come of it? Literal characters match
// themselves. An expression matches any run of characters without "/"; those of the operators that may carry more
// ({+x}, {#x}, {/x}, {?x}, {&x}) any run at all, after the operator's own character, or nothing.
type Template struct {
	tokens []token
	// prefix is what every match begins with; literals counts the literal characters: the more, the closer a match.
	prefix   string
	literals int
}

// A token matches lead once, where it has one, and then any number of characters, where it is a run.
type token struct {
	lead byte
	// run says that characters follow lead, slash that "/" may be among them; a run may be left out with its lead.
	run, slash bool
}

// ParseTemplate reads a template. It says false for one that is no template, or longer than anybody needs.
func ParseTemplate(text string) (*Template, bool) {
	if len(text) > maxTemplate {
		return nil, false
	}
	t := &Template{}
	for text != "" {
		open := strings.IndexByte(text, '{')
		literal := text
		if open >= 0 {
			literal = text[:open]
		}
		if strings.IndexByte(literal, '}') >= 0 {
			return nil, false
		}
		if t.literals == len(t.tokens) {
			t.prefix += literal
		}
		for i := range len(literal) {
			t.tokens = append(t.tokens, token{lead: literal[i]})
		}
		t.literals += len(literal)
		if open < 0 {
			break
		}
		end := strings.IndexByte(text, '}')
		if end < 0 {
			return nil, false
		}
		expr, ok := expression(text[open+1 : end])
		if !ok {
			return nil, false
		}
		t.tokens = append(t.tokens, expr)
		text = text[end+1:]
	}
	return t, true
}

// expression is the token of what stands between braces.
func expression(text string) (token, bool) {
	if text == "" || strings.IndexByte(text, '{') >= 0 {
		return token{}, false
	}
	switch text[0] {
	case '+':
		return token{run: true, slash: true}, true
	case '#', '/', '?', '&':
		return token{lead: text[0], run: true, slash: true}, true
	case '.', ';':
		return token{lead: text[0], run: true}, true
	}
	return token{run: true}, true
}

// Closer says whether t matches more closely than other: it has more literal characters. Nil matches nothing.
func (t *Template) Closer(other *Template) bool {
	return t != nil && (other == nil || t.literals > other.literals)
}

// Match says whether uri may be an expansion of the template. Its cost is at most tokens times characters.
func (t *Template) Match(uri string) bool {
	if len(uri) > MaxURI || !strings.HasPrefix(uri, t.prefix) {
		return false
	}
	// The states of the machine: 2i is "before token i", 2i+1 "in the run of token i".
	n := len(t.tokens)
	now, next := make([]bool, 2*n+1), make([]bool, 2*n+1)
	now[0] = true
	for i := range len(uri) {
		t.skip(now)
		clear(next)
		for j, tok := range t.tokens {
			inRun := tok.run && (tok.slash || uri[i] != '/')
			switch {
			case now[2*j] && tok.lead == uri[i] && !tok.run:
				next[2*j+2] = true
			case now[2*j] && tok.lead == uri[i] && tok.run:
				next[2*j+1] = true
			case now[2*j] && tok.lead == 0 && inRun:
				next[2*j+1] = true
			}
			if now[2*j+1] && inRun {
				next[2*j+1] = true
			}
		}
		now, next = next, now
	}
	t.skip(now)
	return now[2*n]
}

// skip adds the states that are reached without a character: a run may be left out, and may end.
func (t *Template) skip(states []bool) {
	for j, tok := range t.tokens {
		if tok.run && (states[2*j] || states[2*j+1]) {
			states[2*j+2] = true
		}
	}
}

// mostSteps is how long the templates of one server are held against one URI, in tokens times characters.
const mostSteps = 8 << 20

// An Effort holds the templates of servers, one server after another, against one URI, those of each for a moment only: a server that
// lists ten thousand of the worst would have each reading of a resource take minutes. The zero Effort is at its beginning.
type Effort struct {
	server drawbridge.ServerID
	steps  int
}

// Match says whether uri may be an expansion of a template of the server; no where the server has had its moment.
func (e *Effort) Match(server drawbridge.ServerID, t *Template, uri string) bool {
	if server != e.server {
		*e = Effort{server: server}
	}
	if len(uri) > MaxURI || !strings.HasPrefix(uri, t.prefix) {
		return false
	}
	if e.steps > mostSteps {
		return false
	}
	e.steps += len(t.tokens) * len(uri)
	return t.Match(uri)
}
