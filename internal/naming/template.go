package naming

import (
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// maxTemplate is the maximum size of a template, and MaxURI of a URI that is matched against it, in bytes. They limit
// the cost of a match, because a server chooses the template and a caller the URI.
const (
	maxTemplate = 2 << 10
	MaxURI      = 16 << 10
)

// A Template is a URI template (RFC 6570) that is matched against URIs. Literal characters match themselves. An
// expression {x} matches any sequence of characters without "/", and {+x} matches any sequence. An expression with
// another operator, such as {?x}, matches the operator followed by a sequence, or nothing. The sequence may contain "/"
// for {#x}, {/x}, {?x} and {&x}, but not for {.x} and {;x}. Any sequence may be empty.
type Template struct {
	tokens []templateToken
	// prefix is the literal text before the first expression. literals is the number of literal characters in the
	// template. Of two templates, the one with more literal characters is more specific.
	prefix   string
	literals int
}

// A templateToken matches the character literal, if it is not 0, and then a sequence of characters if wildcard is set.
// A token with a wildcard may also match nothing.
type templateToken struct {
	literal byte
	// wildcard is set if a sequence follows the literal. allowsSlash is set if the sequence may contain "/".
	wildcard, allowsSlash bool
}

// ParseTemplate parses a template. The second result is false if the template is invalid or too large.
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

// parseExpression returns the token for the text between the braces; the second result is false if the text is invalid.
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

// MoreSpecificThan reports whether t has more literal characters than other. A nil template is the least specific.
func (t *Template) MoreSpecificThan(other *Template) bool {
	return t != nil && (other == nil || t.literals > other.literals)
}

// Matches reports whether uri may be an expansion of the template. Its time is proportional to at most the number of
// tokens times the length of uri.
func (t *Template) Matches(uri string) bool {
	if len(uri) > MaxURI || !strings.HasPrefix(uri, t.prefix) {
		return false
	}
	// The states of the automaton: 2i means that tokens before i are matched; 2i+1 means that the URI is in the
	// sequence of token i.
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

// skipOptional adds the states that are reachable without reading a character: a token with a wildcard may match
// nothing, and its sequence may end.
func (t *Template) skipOptional(states []bool) {
	for j, tok := range t.tokens {
		if tok.wildcard && (states[2*j] || states[2*j+1]) {
			states[2*j+2] = true
		}
	}
}

// maxMatchSteps is the maximum number of steps for matching one URI against one server's templates. A match takes as
// many steps as the template has tokens, times the length of the URI.
const maxMatchSteps = 8 << 20

// A MatchBudget limits the work of matching one URI against the templates of servers, one server after the other. Each
// server has a budget of maxMatchSteps. Without this limit, a server with ten thousand expensive templates could delay
// each resources/read by minutes. The zero value is ready to use.
type MatchBudget struct {
	server drawbridge.ServerID
	steps  int
}

// Matches reports whether uri may be an expansion of the server's template. If the earlier matches of this server's
// templates have used up its budget of steps, Matches returns false. A call with another server starts a new budget.
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
