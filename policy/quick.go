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
type quick func(s *subject) answer

// A text gives a text that an expression looks at; false where it is none, or not there.
type text func(s *subject) (string, bool)

// A quickener makes quick answers of expressions, and counts how large they are.
type quickener struct {
	nodes int
	// longest is the longest text that the expression has in it.
	longest int
}

// newQuick makes a quick answer to an expression; nil where it asks something else. Most is how many bytes it may look at: with more
// CEL might find that it costs too much.
func newQuick(e ast.Expr) (q quick, most int) {
	var k quickener
	if q = k.truth(e); q == nil {
		return nil, 0
	}
	// A step costs no more than a few, and a tenth for each byte of a text; to look for one in another is both multiplied.
	const step = 20
	return q, 10 * ((maxCost/k.nodes-step)/(k.longest/10+1) - 1)
}

// truth is for an expression that is true or false.
func (k *quickener) truth(e ast.Expr) quick {
	k.nodes++
	switch e.Kind() {
	case ast.SelectKind:
		of, name, tested := memberOf(e)
		if of == nil || !tested || of.AsIdent() != "args" {
			return nil
		}
		return func(s *subject) answer {
			object, err := s.args.object()
			_, ok := object.get(name)
			if err != nil {
				return maybe
			}
			return answerOf(ok)
		}
	case ast.CallKind:
		return k.call(e.AsCall())
	}
	return nil
}

func (k *quickener) call(c ast.CallExpr) quick {
	switch c.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr:
		return k.joined(c.Args(), c.FunctionName() == operators.LogicalAnd)
	case operators.LogicalNot:
		if part := k.truth(c.Args()[0]); part != nil {
			return func(s *subject) answer { return yes - part(s) }
		}
	case operators.Equals, operators.NotEquals:
		a, b := k.text(c.Args()[0]), k.text(c.Args()[1])
		return compared(a, b, func(x, y string) bool { return (x == y) == (c.FunctionName() == operators.Equals) })
	case "startsWith", "endsWith", "contains":
		if !c.IsMemberFunction() || len(c.Args()) != 1 {
			return nil
		}
		if c.Args()[0].Kind() != ast.LiteralKind { // to look for one long text in another costs both, multiplied
			return nil
		}
		how := map[string]func(s, part string) bool{"startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix, "contains": strings.Contains}
		return compared(k.text(c.Target()), k.text(c.Args()[0]), how[c.FunctionName()])
	}
	return nil
}

// joined is for parts with "and" between them, or "or": one that is not, or is, is enough, whatever becomes of the others.
func (k *quickener) joined(args []ast.Expr, and bool) quick {
	decides := answerOf(!and)
	var parts []quick
	for _, arg := range args {
		part := k.truth(arg)
		if part == nil {
			return nil
		}
		parts = append(parts, part)
	}
	return func(s *subject) answer {
		out := yes - decides
		for _, part := range parts {
			switch a := part(s); a {
			case decides:
				return decides
			case maybe:
				out = maybe
			}
		}
		return out
	}
}

func compared(a, b text, how func(a, b string) bool) quick {
	if a == nil || b == nil {
		return nil
	}
	return func(s *subject) answer {
		x, ok := a(s)
		if !ok {
			return maybe
		}
		y, ok := b(s)
		if !ok {
			return maybe
		}
		return answerOf(how(x, y))
	}
}

// text is for an expression that is a text: one that is written there, or one of the call's.
func (k *quickener) text(e ast.Expr) text {
	k.nodes++
	switch e.Kind() {
	case ast.LiteralKind:
		said, ok := e.AsLiteral().(types.String)
		if !ok {
			return nil
		}
		k.longest = max(k.longest, len(said))
		return func(*subject) (string, bool) { return string(said), true }
	case ast.IdentKind:
		return named(e.AsIdent())
	}
	of, name, tested := memberOf(e)
	switch {
	case of == nil || tested:
	case of.AsIdent() == "args":
		return func(s *subject) (string, bool) {
			object, err := s.args.object()
			v, _ := object.get(name)
			said, ok := v.(string)
			return said, ok && err == nil
		}
	case of.AsIdent() == "caller" && name == "principal":
		return func(s *subject) (string, bool) { return s.caller.Principal, true }
	case of.AsIdent() == "caller" && name == "kind":
		return func(s *subject) (string, bool) { return s.caller.kind, true }
	}
	return nil
}

// named is for the texts that have a name of their own.
func named(name string) text {
	switch name {
	case "server":
		return func(s *subject) (string, bool) { return s.server, true }
	case "trust":
		return func(s *subject) (string, bool) { return s.trust, true }
	case "method":
		return func(s *subject) (string, bool) { return s.method, true }
	case "kind":
		return func(s *subject) (string, bool) { return s.kind, true }
	case "tool":
		return func(s *subject) (string, bool) { return s.spec.Tool, true }
	case "name":
		return func(s *subject) (string, bool) { return string(s.spec.Name), true }
	}
	return nil
}

// quickly answers the expression for s without CEL, or says maybe.
func (e *expression) quickly(s *subject) answer {
	if e.quick == nil {
		return maybe
	}
	size := len(s.caller.Principal) + len(s.spec.Tool) + len(s.spec.Name) + len(s.server) + len(s.method)
	if s.args != nil {
		size += len(s.args.params)
	}
	if size > e.most {
		return maybe
	}
	return e.quick(s)
}
