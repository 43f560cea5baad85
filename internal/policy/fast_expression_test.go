package policy

import (
	"encoding/json"
	"strings"
	"testing"
)

// asked returns the quick answer to an expression about a call, and CEL's.
func asked(e *celExpression, params string) (quick, slow matchResult, err error) {
	q := call("fs", "read_file", `{}`)
	q.Params = json.RawMessage(params)
	t := new(Policy).targetFor(q.Kind, &q.Spec, q.Trust)
	s := ruleSubject{ruleTarget: t, caller: newCallerView(&q.Caller), method: q.Method, definition: q.Spec.Definition}
	s.setCall(q.Params, "/home/ada", nil)
	if e.mentions.args {
		if _, err := s.currentArgs().object(); err != nil {
			return matchMaybe, matchMaybe, err
		}
	}
	quick = e.evalFast(&s)
	vars, err := s.expressionVariables(e.mentions)
	if err != nil {
		return quick, matchMaybe, err
	}
	ok, err := e.eval(vars)
	return quick, matchIf(ok), err
}

func TestQuickAnswers(t *testing.T) {
	l, err := newExprCompiler()
	if err != nil {
		t.Fatal(err)
	}
	const params = `{"name":"read_file","arguments":{"text":"rm -rf","n":1,"nil":null,"list":["a"]}}`
	for when, want := range map[string]matchResult{
		`has(args.text) && args.text.startsWith("rm ") && caller.principal != "root"`: matchYes,
		`args["text"].endsWith("-rf")`:                matchYes,
		`args.text.contains("r") || args.none == "x"`: matchYes,
		// CEL's "and" needs one half only
		`args.none == "x" && server == "other"`: matchNo,
		`args.none == "x"`:                      matchMaybe,
		`args.n == "1"`:                         matchMaybe,
		`!(args.n == "1") || kind == "tool"`:    matchYes,
		`has(args.nil) && !has(args.none)`:      matchYes,
		`tool == name || caller.kind == "agent" || trust == "" || method == "x"`: matchNo,
		`args.text == "` + strings.Repeat("x", 4000) + `"`:                       matchNo,
		`args.text.contains("` + strings.Repeat("x", 2000) + `")`:                matchNo,
		`args.text.contains(args.text)`:                                          matchMaybe,
		`args.n > 0`:                                                             matchMaybe,
		`"a" in args.list`:                                                       matchMaybe,
		`args.text.matches("r")`:                                                 matchMaybe,
	} {
		e, err := l.compile(when)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		quick, slow, err := asked(e, params)
		if quick != want {
			t.Errorf("%s: %d, want %d", when, quick, want)
		}
		if quick != matchMaybe && (err != nil || quick != slow) {
			t.Errorf("%s: %d, and to CEL %d, %v", when, quick, slow, err)
		}
	}
	long := `{"arguments":{"text":"` + strings.Repeat("x", 300_000) + `"}}`
	e, err := l.compile(`args.text.contains("` + strings.Repeat("y", 100) + `")`)
	if err != nil {
		t.Fatal(err)
	}
	if quick, _, err := asked(e, long); quick != matchMaybe || err == nil {
		t.Errorf("what is too long to be judged: %d, %v", quick, err)
	}
}

// FuzzQuick holds quick answers against those of CEL: where there is one CEL says the same, and finds nothing that it
// cannot judge.
func FuzzQuick(f *testing.F) {
	l, err := newExprCompiler()
	if err != nil {
		f.Fatal(err)
	}
	for _, when := range []string{
		`has(args.a) && args.a.startsWith("x")`, `!(args.a == args["b"]) || server != "fs"`,
		`args.a.contains("") && caller.principal == "ada"`,
		`args.a.endsWith("\n") || has(args.b) || kind == "tool"`, `trust == method`, `args.b == "" && args.none == ""`,
	} {
		for _, params := range []string{`{"arguments":{"a":"xy","b":"x\n"}}`, `{"arguments":{"a":1,"b":null}}`,
			`{"arguments":{"b":["x"],"A":""}}`, `{}`} {
			f.Add(when, params)
		}
	}
	f.Fuzz(func(t *testing.T, when, params string) {
		e, err := l.compile(when)
		if err != nil {
			return
		}
		quick, slow, err := asked(e, params)
		if quick != matchMaybe && (err != nil || quick != slow) {
			t.Errorf("%s about %s: %d, and to CEL %d, %v", when, params, quick, slow, err)
		}
	})
}
