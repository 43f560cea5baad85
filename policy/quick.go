package policy

import (
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Most expressions ask what a few texts are. Those are answered here, in a small part of the time that CEL takes: the answer is the
// same, or maybe, and then CEL is asked.

// A quick answers an expression, or a part of one. Maybe is for what is an error, or not text, or not known here.
type quick struct {
	verb verb
	// parts are those of an expression with parts; name is that of an argument that has is about; a and b are texts.
	parts []quick
	name  string
	a, b  text
}

// A verb is what is asked of parts, or of texts.
type verb uint8

const (
	askHas verb = iota
	askNot
	askAnd
	askOr
	askEqual
	askUnequal
	askStarts
	askEnds
	askContains
)

// A text is one that an expression looks at: what is said there, or what stands in an argument of that name, or what else it is of.
type text struct {
	of   source
	said string
}

// A source is where a text is from.
type source uint8

const (
	ofNothing source = iota
	ofItself
	ofArgument
	ofPrincipal
	ofDoor
	ofServer
	ofTrust
	ofMethod
	ofKind
	ofTool
	ofName
)

// A quickener makes quick answers of expressions, and counts how large they are.
type quickener struct {
	nodes int
	// longest is the longest text that the expression has in it.
	longest int
}

// newQuick makes a quick answer to an expression; nil where it asks something else. Most is how many bytes it may look at: with more
// CEL might find that it costs too much.
func newQuick(e ast.Expr) (q *quick, most int) {
	var k quickener
	all, ok := k.truth(e)
	if !ok {
		return nil, 0
	}
	// A step costs no more than a few, and a tenth for each byte of a text; to look for one in another is both multiplied.
	const step = 20
	return &all, 10 * ((maxCost/k.nodes-step)/(k.longest/10+1) - 1)
}

// truth is for an expression that is true or false.
func (k *quickener) truth(e ast.Expr) (q quick, ok bool) {
	k.nodes++
	switch e.Kind() {
	case ast.SelectKind:
		of, name, tested := memberOf(e)
		return quick{verb: askHas, name: name}, of != nil && tested && of.AsIdent() == "args"
	case ast.CallKind:
		return k.call(e.AsCall())
	}
	return q, false
}

func (k *quickener) call(c ast.CallExpr) (q quick, ok bool) {
	switch c.FunctionName() {
	case operators.LogicalAnd:
		return k.joined(askAnd, c.Args())
	case operators.LogicalOr:
		return k.joined(askOr, c.Args())
	case operators.LogicalNot:
		return k.joined(askNot, c.Args()[:1])
	case operators.Equals:
		return k.compared(askEqual, c.Args()[0], c.Args()[1])
	case operators.NotEquals:
		return k.compared(askUnequal, c.Args()[0], c.Args()[1])
	case "startsWith", "endsWith", "contains":
		if !c.IsMemberFunction() || len(c.Args()) != 1 {
			return q, false
		}
		if c.Args()[0].Kind() != ast.LiteralKind { // to look for one long text in another costs both, multiplied
			return q, false
		}
		how := map[string]verb{"startsWith": askStarts, "endsWith": askEnds, "contains": askContains}
		return k.compared(how[c.FunctionName()], c.Target(), c.Args()[0])
	}
	return q, false
}

func (k *quickener) joined(how verb, args []ast.Expr) (q quick, ok bool) {
	q.verb = how
	for _, arg := range args {
		part, ok := k.truth(arg)
		if !ok {
			return q, false
		}
		q.parts = append(q.parts, part)
	}
	return q, true
}

func (k *quickener) compared(how verb, one, other ast.Expr) (quick, bool) {
	a, b := k.text(one), k.text(other)
	return quick{verb: how, a: a, b: b}, a.of != ofNothing && b.of != ofNothing
}

// text is for an expression that is a text: one that is written there, or one of the call's. It is of nothing where it is neither.
func (k *quickener) text(e ast.Expr) text {
	k.nodes++
	switch e.Kind() {
	case ast.LiteralKind:
		said, ok := e.AsLiteral().(types.String)
		if !ok {
			return text{}
		}
		k.longest = max(k.longest, len(said))
		return text{ofItself, string(said)}
	case ast.IdentKind:
		return text{of: sourceOf(e.AsIdent())}
	}
	of, member, tested := memberOf(e)
	switch {
	case of == nil || tested:
	case of.AsIdent() == "args":
		return text{ofArgument, member}
	case of.AsIdent() == "caller" && member == "principal":
		return text{of: ofPrincipal}
	case of.AsIdent() == "caller" && member == "kind":
		return text{of: ofDoor}
	}
	return text{}
}

// sourceOf is for the texts that have a name of their own.
func sourceOf(name string) source {
	switch name {
	case "server":
		return ofServer
	case "trust":
		return ofTrust
	case "method":
		return ofMethod
	case "kind":
		return ofKind
	case "tool":
		return ofTool
	case "name":
		return ofName
	}
	return ofNothing
}

// quickly answers the expression for s without CEL, or says maybe.
func (e *expression) quickly(s *subject) answer {
	if e.quick == nil {
		return maybe
	}
	size := len(s.caller.principal) + len(s.tool) + len(s.name) + len(s.server)
	if e.about.method {
		size += len(s.how())
	}
	if args := s.args(); args != nil {
		size += len(args.params)
	}
	if size > e.most {
		return maybe
	}
	return e.quick.answer(s)
}

// answer gives what is so of s, or says maybe. Of parts with "and" between them, or "or", one that is not, or is, is enough, whatever
// becomes of the others.
func (q *quick) answer(s *subject) answer {
	switch q.verb {
	case askHas:
		object, err := s.args().object()
		if err != nil {
			return maybe
		}
		_, ok := object.get(q.name)
		return answerOf(ok)
	case askNot:
		return yes - q.parts[0].answer(s)
	case askAnd, askOr:
		decides := answerOf(q.verb == askOr)
		out := yes - decides
		for i := range q.parts {
			switch a := q.parts[i].answer(s); a {
			case decides:
				return decides
			case maybe:
				out = maybe
			}
		}
		return out
	}
	a, ok := q.a.in(s)
	if !ok {
		return maybe
	}
	b, ok := q.b.in(s)
	if !ok {
		return maybe
	}
	switch q.verb {
	case askEqual:
		return answerOf(a == b)
	case askUnequal:
		return answerOf(a != b)
	case askStarts:
		return answerOf(strings.HasPrefix(a, b))
	case askEnds:
		return answerOf(strings.HasSuffix(a, b))
	case askContains:
		return answerOf(strings.Contains(a, b))
	}
	return maybe
}

// in gives the text that t is for s; false where it is none, or not there.
func (t *text) in(s *subject) (string, bool) {
	switch t.of {
	case ofItself:
		return t.said, true
	case ofArgument:
		object, err := s.args().object()
		if err != nil {
			return "", false
		}
		v, _ := object.get(t.said)
		said, ok := v.(string)
		return said, ok
	case ofPrincipal:
		return s.caller.principal, true
	case ofDoor:
		return s.caller.kind.String(), true
	case ofServer:
		return s.server, true
	case ofTrust:
		return s.trust, true
	case ofMethod:
		return s.how(), true
	case ofKind:
		return s.kind, true
	case ofTool:
		return s.tool, true
	case ofName:
		return string(s.name), true
	}
	return "", false
}
