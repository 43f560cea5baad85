package naming

import (
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// maxTemplate bounds a template, MaxURI what it is compared with, in bytes: a server writes the one and a caller the
// other, and neither may cost more than a moment.
const (
	maxTemplate = 2 << 10
	MaxURI      = 16 << 10
)

// A Template is a URI template (RFC 6570) that is matched against URIs. Literal characters match themselves. An
// expression matches any run of characters without "/". Expressions of the operators {+x}, {#x}, {/x}, {?x} and {&x}
// match any run after the operator's own character, or nothing.
type Template struct {
	tokens []templateToken
	// prefix is what every match begins with; literals counts the literal characters: the more, the closer a match.
	prefix   string
	literals int
}

// A templateToken matches lead once, if it has one, and then a run of characters if it is a wildcard.
type templateToken struct {
	literal byte
	// wildcard reports that a run follows lead, and slash that the run may contain "/"; such a run is optional.
	wildcard, allowsSlash bool
}

// ParseTemplate parses a template. It returns false for an invalid or oversized one.
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
			t.tokens = append(t.tokens, templateToken{literal: literal[i]})
		}
		t.literals += len(literal)
		if open < 0 {
			break
		}
		end := strings.IndexByte(text, '}')
		if end < 0 {
			return nil, false
		}
		expr, ok := parseExpression(text[open+1 : end])
		if !ok {
			return nil, false
		}
		t.tokens = append(t.tokens, expr)
		text = text[end+1:]
	}
	return t, true
}

// parseExpression returns the token for the text between braces.
func parseExpression(text string) (templateToken, bool) {
	if text == "" || strings.IndexByte(text, '{') >= 0 {
		return templateToken{}, false
	}
	switch text[0] {
	case '+':
		return templateToken{wildcard: true, allowsSlash: true}, true
	case '#', '/', '?', '&':
		return templateToken{literal: text[0], wildcard: true, allowsSlash: true}, true
	case '.', ';':
		return templateToken{literal: text[0], wildcard: true}, true
	}
	return templateToken{wildcard: true}, true
}

// MoreSpecificThan reports whether t has more literal characters than other. A nil template matches nothing.
func (t *Template) MoreSpecificThan(other *Template) bool {
	return t != nil && (other == nil || t.literals > other.literals)
}

// Matches reports whether uri may be an expansion of the template. Its cost is at most tokens times characters.
func (t *Template) Matches(uri string) bool {
	if len(uri) > MaxURI || !strings.HasPrefix(uri, t.prefix) {
		return false
	}
	// The states of the machine: 2i is "before token i", 2i+1 "in the run of token i".
	n := len(t.tokens)
	now, next := make([]bool, 2*n+1), make([]bool, 2*n+1)
	now[0] = true
	for i := range len(uri) {
		t.skipOptional(now)
		clear(next)
		for j, tok := range t.tokens {
			inRun := tok.wildcard && (tok.allowsSlash || uri[i] != '/')
			switch {
			case now[2*j] && tok.literal == uri[i] && !tok.wildcard:
				next[2*j+2] = true
			case now[2*j] && tok.literal == uri[i] && tok.wildcard:
				next[2*j+1] = true
			case now[2*j] && tok.literal == 0 && inRun:
				next[2*j+1] = true
			}
			if now[2*j+1] && inRun {
				next[2*j+1] = true
			}
		}
		now, next = next, now
	}
	t.skipOptional(now)
	return now[2*n]
}

// skipOptional adds the states that are reached without a character: a run may be empty, and may end.
func (t *Template) skipOptional(states []bool) {
	for j, tok := range t.tokens {
		if tok.wildcard && (states[2*j] || states[2*j+1]) {
			states[2*j+2] = true
		}
	}
}

// maxMatchSteps bounds the work on one server's templates for one URI, in tokens times characters.
const maxMatchSteps = 8 << 20

// A MatchBudget bounds the work of matching servers' templates, one server after another, against one URI. Otherwise a
// server with ten thousand of the worst templates would delay each resources/read by minutes. The zero value is ready.
type MatchBudget struct {
	server drawbridge.ServerID
	steps  int
}

// Matches reports whether uri may be an expansion of the server's template. It returns false once the server's budget
// is spent.
func (e *MatchBudget) Matches(server drawbridge.ServerID, t *Template, uri string) bool {
	if server != e.server {
		*e = MatchBudget{server: server}
	}
	if len(uri) > MaxURI || !strings.HasPrefix(uri, t.prefix) {
		return false
	}
	if e.steps > maxMatchSteps {
		return false
	}
	e.steps += len(t.tokens) * len(uri)
	return t.Matches(uri)
}
