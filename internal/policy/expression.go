package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/containers"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/stdlib"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"
	"cel.dev/cel-go/parser"
)

// CEL is assembled from its parts, without its package cel. That package loads descriptors of protocol buffers before
// main begins. Importing it would cost a millisecond at each start of each process, even if no rule has an expression.

// MaxExpressionBytes is the maximum size of an expression. maxExpressionCost is the maximum cost of one evaluation in
// CEL units: one unit for a step, and one for each ten bytes of text read.
const (
	MaxExpressionBytes = 4 << 10
	maxExpressionCost  = 20_000
)

// mentions are the parts of a request that an expression uses. client reports whether it uses the declared name of the
// caller's program.
type mentions struct {
	args, method, card, caller, client, run, others bool
	// parts are the members that the expression uses: "args.path", "caller.scopes". If the expression uses a whole
	// variable, parts contains the variable's name: "trust". An argument whose presence is only tested is not in parts.
	parts []string
	// names are the names of all members that the expression selects, from any object.
	names []string
	// compared are the texts that the expression compares with members of variables.
	compared []comparedText
}

// A comparedText is a text that is compared with a member of a variable, such as caller.kind.
type comparedText struct{ part, text string }

// An exprCompiler compiles expressions. It is created for the first rule with an expression.
type exprCompiler struct {
	parser   *parser.Parser
	checker  *checker.Env
	interp   interpreter.Interpreter
	registry *types.Registry
	// cost is an unused cost tracker; each evaluation uses a copy of it.
	cost *cost.Tracker
}

// A celExpression is a compiled CEL expression.
type celExpression struct {
	program  interpreter.InterpretableV2
	cost     *cost.Tracker
	mentions mentions
	// fast is the fast form of the expression; nil if there is none. maxBytes is the size of the largest call for which
	// fast may be used.
	fast     *fastExpr
	maxBytes int
}

func newExprCompiler() (*exprCompiler, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	l := &exprCompiler{registry: registry}
	if l.cost, err = cost.NewTracker(nil, cost.TrackerLimit(maxExpressionCost)); err != nil {
		return nil, err
	}
	if l.parser, err = parser.NewParser(
		parser.Macros(parser.AllMacros...), parser.MaxRecursionDepth(50),
		parser.ExpressionSizeCodePointLimit(MaxExpressionBytes),
		parser.ErrorReportingLimit(1), parser.EnableIdentEscapeSyntax(true),
	); err != nil {
		return nil, err
	}
	container := containers.DefaultContainer
	if l.checker, err = checker.NewEnv(container, registry, checker.CrossTypeNumericComparisons(true)); err != nil {
		return nil, err
	}
	dynamic := types.NewMapType(types.StringType, types.DynType)
	err = l.checker.AddIdents(append(stdlib.Types(),
		decls.NewVariable("caller", dynamic), decls.NewVariable("server", types.StringType),
		decls.NewVariable("tool", types.StringType), decls.NewVariable("name", types.StringType),
		decls.NewVariable("kind", types.StringType), decls.NewVariable("args", dynamic),
		decls.NewVariable("annotations", dynamic), decls.NewVariable("trust", types.StringType),
		decls.NewVariable("method", types.StringType), decls.NewVariable("run", dynamic))...)
	if err != nil {
		return nil, err
	}
	if err := l.checker.AddFunctions(stdlib.Functions()...); err != nil {
		return nil, err
	}
	dispatcher := interpreter.NewDispatcher()
	for _, f := range stdlib.Functions() {
		overloads, err := f.Bindings()
		if err != nil {
			return nil, err
		}
		if err := dispatcher.Add(overloads...); err != nil {
			return nil, err
		}
	}
	factory := interpreter.NewAttributeFactory(container, registry, registry)
	l.interp = interpreter.NewInterpreter(dispatcher, container, registry, registry, factory)
	return l, nil
}

// compile compiles an expression with a boolean result. The error is one line with the position of the mistake.
func (l *exprCompiler) compile(text string) (*celExpression, error) {
	if len(text) > MaxExpressionBytes {
		return nil, fmt.Errorf("when has more than %d bytes", MaxExpressionBytes)
	}
	source := common.NewTextSource(text)
	parsed, errs := l.parser.Parse(source)
	if len(errs.GetErrors()) > 0 {
		return nil, firstCompileError(errs)
	}
	checked, errs := checker.Check(parsed, source, l.checker)
	if len(errs.GetErrors()) > 0 {
		return nil, firstCompileError(errs)
	}
	// The type of an argument such as "args.force" is known only at evaluation. A value other than a boolean is then an
	// error.
	if kind := checked.GetType(checked.Expr().ID()); !kind.IsExactType(types.BoolType) &&
		!kind.IsExactType(types.DynType) {
		return nil, fmt.Errorf("when returns %s, must return bool", checker.FormatCELType(kind))
	}
	program, err := l.interp.NewInterpretable(checked,
		interpreter.Optimize(), interpreter.CompileRegexConstants(interpreter.MatchesRegexOptimization))
	if err != nil {
		return nil, fmt.Errorf("when: %w", err)
	}
	out := &celExpression{program: program, cost: l.cost, mentions: findMentions(checked.Expr())}
	out.fast, out.maxBytes = compileFast(checked.Expr())
	return out, nil
}

// firstCompileError returns the first of several errors, as a text of one line.
func firstCompileError(errs *common.Errors) error {
	first := errs.GetErrors()[0]
	text, _, _ := strings.Cut(first.Message, "\n")
	return fmt.Errorf("when, character %d: %s", first.Location.Column()+1, text)
}

// findMentions returns the parts of a request that the expression uses.
func findMentions(expr ast.Expr) (m mentions) {
	within := map[int64]bool{} // objects from which a member is selected
	ast.PreOrderVisit(expr, ast.NewExprVisitor(func(e ast.Expr) {
		if of, member, tested := memberAccess(e); of != nil {
			within[of.ID()] = true
			if !tested || of.AsIdent() != "args" {
				m.parts = append(m.parts, of.AsIdent()+"."+member)
			}
		}
		if name, ok := requestedMember(e); ok && !slices.Contains(m.names, name) {
			m.names = append(m.names, name)
		}
		m.compared = append(m.compared, comparedTexts(e)...)
		if e.Kind() != ast.IdentKind {
			return
		}
		if !within[e.ID()] {
			m.parts = append(m.parts, e.AsIdent())
		}
		switch e.AsIdent() {
		case "args":
			m.args = true
		case "method":
			m.method = true
		case "tool", "name", "kind", "annotations":
			m.card = true
		case "caller":
			m.caller = true
		case "run":
			m.run = true
		default:
			m.others = true
		}
	}))
	m.client = slices.Contains(m.parts, "caller") || slices.Contains(m.parts, "caller.client")
	return m
}

// comparedTexts returns the texts that an expression compares with a member of a variable: caller.kind == "agent",
// "agent" != caller.kind, and caller.kind in ["agent", "author"].
func comparedTexts(e ast.Expr) (all []comparedText) {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return nil
	}
	member, texts := e.AsCall().Args()[0], e.AsCall().Args()[1:]
	switch e.AsCall().FunctionName() {
	case operators.Equals, operators.NotEquals:
		if member.Kind() == ast.LiteralKind {
			member, texts = texts[0], []ast.Expr{member}
		}
	case operators.In:
		if texts[0].Kind() != ast.ListKind {
			return nil
		}
		texts = texts[0].AsList().Elements()
	default:
		return nil
	}
	of, name, _ := memberAccess(member)
	if of == nil {
		return nil
	}
	for _, t := range texts {
		if t.Kind() == ast.LiteralKind {
			if text, ok := t.AsLiteral().Value().(string); ok {
				all = append(all, comparedText{of.AsIdent() + "." + name, text})
			}
		}
	}
	return all
}

// requestedMember returns the name of the member that an expression selects. Such expressions are x.name, x["name"] and
// "name" in x.
func requestedMember(e ast.Expr) (name string, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().FieldName(), true
	case ast.CallKind:
		call := e.AsCall()
		// place is the index of the name among the operands.
		place := slices.Index([]string{operators.In, operators.Index}, call.FunctionName())
		if place >= 0 && call.Args()[place].Kind() == ast.LiteralKind {
			name, ok = call.Args()[place].AsLiteral().Value().(string)
		}
	}
	return name, ok
}

// memberAccess returns the object and the member name of an expression args.x or args["x"]. tested reports whether the
// expression only tests the member's presence. of is nil for any other expression.
func memberAccess(e ast.Expr) (of ast.Expr, member string, tested bool) {
	switch e.Kind() {
	case ast.SelectKind:
		of, member, tested = e.AsSelect().Operand(), e.AsSelect().FieldName(), e.AsSelect().IsTestOnly()
	case ast.CallKind:
		if call := e.AsCall(); call.FunctionName() == operators.Index && call.Args()[1].Kind() == ast.LiteralKind {
			text, ok := call.Args()[1].AsLiteral().Value().(string)
			if !ok {
				return nil, "", false
			}
			of, member = call.Args()[0], text
		}
	}
	if of == nil || of.Kind() != ast.IdentKind {
		return nil, "", false
	}
	return of, member, tested
}

// eval evaluates the expression with the given variables. The error never contains a value of the call.
func (e *celExpression) eval(vars map[string]any) (truth bool, err error) {
	defer func() {
		if recover() != nil { // CEL panics when the cost limit is exceeded
			truth, err = false, errors.New("when: evaluation stopped: the expression is too expensive")
		}
	}()
	frame, err := interpreter.NewExecutionFrame(vars)
	if err != nil {
		return false, errors.New("when: the evaluation cannot begin")
	}
	defer frame.Close()
	count, err := e.cost.Clone()
	if err != nil {
		return false, errors.New("when: the evaluation cannot begin")
	}
	frame.SetCostTracker(count)
	switch out := e.program.Exec(frame).(type) {
	case types.Bool:
		return bool(out), nil
	case *types.Err:
		if strings.HasPrefix(out.Error(), "no such key") {
			return false, errors.New("when: it reads a missing value")
		}
	}
	return false, errors.New("when: the result is not a boolean")
}
