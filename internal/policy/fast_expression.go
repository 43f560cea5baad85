package policy

import (
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Most expressions compare a few strings. A fastExpr evaluates such an expression without CEL. It returns the same
// result as CEL, or matchMaybe if CEL must evaluate the expression. BenchmarkFastExpression decides a call by four
// rules, two of them with expressions. One run measured 21 µs and 9 allocations with fastExpr, and 105 µs and 51
// allocations without.

// A fastExpr evaluates a boolean expression, or a part of an expression. If a value is unknown or not a string, or if
// an error occurs, the result is matchMaybe.
type fastExpr struct {
	op fastOp
	// parts are the operands of opAnd, opOr and opNot. name is the argument whose presence opHas tests. a and b are the
	// operands of a comparison.
	parts []fastExpr
	name  string
	a, b  textOperand
}

// A fastOp is an operation on boolean parts or on strings.
type fastOp uint8

const (
	opHas fastOp = iota
	opNot
	opAnd
	opOr
	opEqual
	opUnequal
	opStarts
	opEnds
	opContains
)

// A textOperand is a string operand: a literal, an argument, or another value of the call. The field literal contains
// the literal or the name of the argument.
type textOperand struct {
	source  operandSource
	literal string
}

// An operandSource is the origin of a string operand.
type operandSource uint8

const (
	sourceNone operandSource = iota
	sourceLiteral
	sourceArgument
	sourcePrincipal
	sourceTransport
	sourceServer
	sourceTrust
	sourceMethod
	sourceKind
	sourceTool
	sourceName
)

// A fastCompiler compiles fast expressions. It counts their nodes, from which the maximum size of a call is computed.
type fastCompiler struct {
	nodes int
	// longest is the length of the longest literal.
	longest int
}

// compileFast compiles e to a fastExpr. It returns nil if e uses an operation that has no fast form. most is the
// largest call, in bytes, for which the fast form may be used. A larger call is evaluated by CEL, which may refuse the
// call because of its cost.
func compileFast(e ast.Expr) (q *fastExpr, most int) {
	var k fastCompiler
	all, ok := k.compileBool(e)
	if !ok {
		return nil, 0
	}
	// In CEL a step costs at most a few units, and each byte of a text costs a tenth of a unit. The cost of searching
	// for one text in another is the product of both lengths.
	const step = 20
	return &all, 10 * ((maxExpressionCost/k.nodes-step)/(k.longest/10+1) - 1)
}

// compileBool compiles a boolean expression.
func (k *fastCompiler) compileBool(e ast.Expr) (q fastExpr, ok bool) {
	k.nodes++
	switch e.Kind() {
	case ast.SelectKind:
		of, name, tested := memberAccess(e)
		return fastExpr{op: opHas, name: name}, of != nil && tested && of.AsIdent() == "args"
	case ast.CallKind:
		return k.compileCall(e.AsCall())
	}
	return q, false
}

func (k *fastCompiler) compileCall(c ast.CallExpr) (q fastExpr, ok bool) {
	switch c.FunctionName() {
	case operators.LogicalAnd:
		return k.compileLogic(opAnd, c.Args())
	case operators.LogicalOr:
		return k.compileLogic(opOr, c.Args())
	case operators.LogicalNot:
		return k.compileLogic(opNot, c.Args()[:1])
	case operators.Equals:
		return k.compileComparison(opEqual, c.Args()[0], c.Args()[1])
	case operators.NotEquals:
		return k.compileComparison(opUnequal, c.Args()[0], c.Args()[1])
	case "startsWith", "endsWith", "contains":
		if !c.IsMemberFunction() || len(c.Args()) != 1 {
			return q, false
		}
		if c.Args()[0].Kind() != ast.LiteralKind { // the cost of a search is the product of both lengths
			return q, false
		}
		how := map[string]fastOp{"startsWith": opStarts, "endsWith": opEnds, "contains": opContains}
		return k.compileComparison(how[c.FunctionName()], c.Target(), c.Args()[0])
	}
	return q, false
}

func (k *fastCompiler) compileLogic(how fastOp, args []ast.Expr) (q fastExpr, ok bool) {
	q.op = how
	for _, arg := range args {
		part, ok := k.compileBool(arg)
		if !ok {
			return q, false
		}
		q.parts = append(q.parts, part)
	}
	return q, true
}

func (k *fastCompiler) compileComparison(how fastOp, one, other ast.Expr) (fastExpr, bool) {
	a, b := k.compileText(one), k.compileText(other)
	return fastExpr{op: how, a: a, b: b}, a.source != sourceNone && b.source != sourceNone
}

// compileText compiles a string expression: a literal or a value of the call. For any other expression, the source of
// the result is sourceNone.
func (k *fastCompiler) compileText(e ast.Expr) textOperand {
	k.nodes++
	switch e.Kind() {
	case ast.LiteralKind:
		said, ok := e.AsLiteral().(types.String)
		if !ok {
			return textOperand{}
		}
		k.longest = max(k.longest, len(said))
		return textOperand{sourceLiteral, string(said)}
	case ast.IdentKind:
		return textOperand{source: sourceByName(e.AsIdent())}
	}
	of, member, tested := memberAccess(e)
	switch {
	case of == nil || tested:
	case of.AsIdent() == "args":
		return textOperand{sourceArgument, member}
	case of.AsIdent() == "caller" && member == "principal":
		return textOperand{source: sourcePrincipal}
	case of.AsIdent() == "caller" && member == "kind":
		return textOperand{source: sourceTransport}
	}
	return textOperand{}
}

// sourceByName returns the source for a variable whose value is a string; sourceNone for any other name.
func sourceByName(name string) operandSource {
	switch name {
	case "server":
		return sourceServer
	case "trust":
		return sourceTrust
	case "method":
		return sourceMethod
	case "kind":
		return sourceKind
	case "tool":
		return sourceTool
	case "name":
		return sourceName
	}
	return sourceNone
}

// evalFast evaluates the expression for s without CEL. It returns matchMaybe if CEL must evaluate the expression.
func (e *celExpression) evalFast(s *ruleSubject) matchResult {
	if e.fast == nil {
		return matchMaybe
	}
	size := len(s.caller.principal) + len(s.tool) + len(s.name) + len(s.server)
	if e.mentions.method {
		size += len(s.foldedMethod())
	}
	if args := s.currentArgs(); args != nil {
		size += len(args.params)
	}
	if size > e.maxBytes {
		return matchMaybe
	}
	return e.fast.eval(s)
}

// eval evaluates q for s. If one part is false, "and" is false even if another part is matchMaybe. If one part is true,
// "or" is true in the same way.
func (q *fastExpr) eval(s *ruleSubject) matchResult {
	switch q.op {
	case opHas:
		object, err := s.currentArgs().object()
		if err != nil {
			return matchMaybe
		}
		_, ok := object.get(q.name)
		return matchIf(ok)
	case opNot:
		return matchYes - q.parts[0].eval(s)
	case opAnd, opOr:
		decides := matchIf(q.op == opOr)
		out := matchYes - decides
		for i := range q.parts {
			switch a := q.parts[i].eval(s); a {
			case decides:
				return decides
			case matchMaybe:
				out = matchMaybe
			}
		}
		return out
	}
	a, ok := q.a.valueFor(s)
	if !ok {
		return matchMaybe
	}
	b, ok := q.b.valueFor(s)
	if !ok {
		return matchMaybe
	}
	switch q.op {
	case opEqual:
		return matchIf(a == b)
	case opUnequal:
		return matchIf(a != b)
	case opStarts:
		return matchIf(strings.HasPrefix(a, b))
	case opEnds:
		return matchIf(strings.HasSuffix(a, b))
	case opContains:
		return matchIf(strings.Contains(a, b))
	}
	return matchMaybe
}

// valueFor returns the operand's string for s. It returns false if the value is missing or not a string.
func (t *textOperand) valueFor(s *ruleSubject) (string, bool) {
	switch t.source {
	case sourceLiteral:
		return t.literal, true
	case sourceArgument:
		object, err := s.currentArgs().object()
		if err != nil {
			return "", false
		}
		v, _ := object.get(t.literal)
		said, ok := v.(string)
		return said, ok
	case sourcePrincipal:
		return s.caller.principal, true
	case sourceTransport:
		return s.caller.kind.String(), true
	case sourceServer:
		return s.server, true
	case sourceTrust:
		return s.trust, true
	case sourceMethod:
		return s.foldedMethod(), true
	case sourceKind:
		return s.kind, true
	case sourceTool:
		return s.tool, true
	case sourceName:
		return string(s.name), true
	}
	return "", false
}
