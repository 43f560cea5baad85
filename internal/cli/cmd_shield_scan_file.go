package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// An unreadableRowError wraps the error of a row that cannot be read.
type unreadableRowError struct{ error }

// eachFileRow calls do for each row of a file; "-" is standard input. If do returns an unreadableRowError, eachFileRow
// continues with the next row and marks the scan in p as failed. It prints the first such error. If several rows cannot
// be read, it also prints their number.
func (d shieldCommands) eachFileRow(file string, p *scanPrinter, do func(jsonLine) error) error {
	in := d.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	err := eachJSONLine(in, func(r jsonLine) error {
		err := do(r)
		if bad, ok := errors.AsType[unreadableRowError](err); ok {
			if p.unreadable++; p.unreadable == 1 {
				safetext.Fprintf(d.Err, "✗ %s:%d: %v\n", file, r.Number, bad)
			}
			return nil
		}
		return err
	})
	if p.unreadable > 1 {
		safetext.Fprintf(d.Err, "✗ %s: %d rows cannot be read\n", file, p.unreadable)
	}
	p.failed = p.failed || p.unreadable > 0
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// rowKinds returns the names of the members that can contain the content of a row, such as "tool". The name of the
// member is the kind of the content.
func rowKinds() []string {
	return []string{"tool", "prompt", "resource", "template", "elicitation", "instructions", "text", "result"}
}

// scanRow checks a row and prints the outcome. If the row cannot be read, it also returns an unreadableRowError.
func (p *scanPrinter) scanRow(ctx context.Context, s *shield.Shield, r jsonLine) error {
	o := scanOutcome{ID: r.id(), Kind: "row"}
	err := r.Err
	if err == nil {
		err = o.judgeRow(ctx, s, r.Object)
	}
	if err != nil {
		o.Line, o.Verdict, o.Reasons, o.Canonical = r.Number, shield.VerdictHeld,
			[]shield.Finding{unreadableReason(r.Number, err)}, nil
	}
	if printed := p.printOutcome(o); printed != nil || err == nil {
		return printed
	}
	return unreadableRowError{err}
}

// unreadableReason returns the finding for a row that cannot be read.
func unreadableReason(line int, err error) shield.Finding {
	at := 0
	if syntax, ok := errors.AsType[*rawjson.SyntaxError](err); ok {
		at = syntax.Offset
	}
	return shield.Finding{Offset: at, Rule: "unreadable", Action: "held",
		Why: fmt.Sprintf("line %d cannot be read: %v", line, err)}
}

// judgeRow checks the content of a row. The error is the reason why the content cannot be checked.
func (o *scanOutcome) judgeRow(ctx context.Context, s *shield.Shield, line []byte) error {
	kind, raw, err := rowSubject(line)
	if err != nil {
		return err
	}
	o.Kind = kind
	if err := checkRowValue(kind, raw); err != nil {
		return fmt.Errorf("%q: %w", kind, err)
	}
	return o.judge(ctx, s, kind, raw)
}

// rowSubject returns the kind and the content of a row. If the row is itself the definition of a tool, the content is
// the whole row. A row with two contents is an error, because another program may read the other content.
func rowSubject(line []byte) (kind string, raw json.RawMessage, err error) {
	name := rawjson.Get(line, "name")
	if name != nil && (rawjson.Get(line, "description") != nil || rawjson.Get(line, "inputSchema") != nil) {
		return "tool", line, nil
	}
	for m := range rawjson.Members(line) {
		for _, k := range rowKinds() {
			switch {
			case !m.HasName(k):
			case kind != "":
				return "row", nil, fmt.Errorf("has %q and %q: a row has one thing", kind, k)
			default:
				kind, raw = k, m.Value
			}
		}
	}
	switch {
	case kind != "":
		return kind, raw, nil
	case name != nil:
		return "tool", line, nil
	}
	return "row", nil, fmt.Errorf("neither a tool nor an object with one of %s", strings.Join(rowKinds(), ", "))
}

// checkRowValue checks that a value has the JSON type of its kind. For example, it returns an error for a definition
// that is null. It also returns an error for a definition that is nested too deeply.
func checkRowValue(kind string, raw json.RawMessage) error {
	switch first := raw[0]; kind {
	case "text", "instructions":
		if first != '"' {
			return errors.New("it must be a JSON string")
		}
	case "result":
		if first != '{' && first != '[' && first != '"' {
			return errors.New("it must be a JSON object")
		}
	default:
		if first != '{' {
			return errors.New("a definition must be a JSON object")
		}
		if kind != "elicitation" {
			return checkDefinitionDepth(raw)
		}
	}
	return nil
}

// diffRow compares the two definitions of a row and prints the result. If the row cannot be read, it also returns an
// unreadableRowError.
func (p *scanPrinter) diffRow(s *shield.Shield, r jsonLine) error {
	before, after := rawjson.Get(r.Object, "before"), rawjson.Get(r.Object, "after")
	err := r.Err
	switch {
	case err != nil:
	case before == nil || after == nil, string(before) == "null", string(after) == "null":
		err = errors.New(`no "before", or no "after"`)
	}
	var c shield.Comparison
	line := 0
	if err == nil {
		c, err = s.CompareDefinitions(before, after)
	}
	if err != nil {
		line = r.Number
		c = shield.Comparison{Risk: shield.RiskHigh, NeedsApproval: true, Changes: []shield.DefinitionChange{},
			Reasons: []shield.Finding{unreadableReason(r.Number, err)}}
	}
	if printed := p.printComparison(r.id(), line, c); printed != nil || err == nil {
		return printed
	}
	return unreadableRowError{err}
}

// printComparison prints the comparison of a pair. Line is the line number of an unreadable row; 0 for any other row.
func (p *scanPrinter) printComparison(id string, line int, c shield.Comparison) error {
	if p.json {
		return printJSONLine(p.out, struct {
			ID   string `json:"id"`
			Line int    `json:"line,omitempty"`
			shield.Comparison
		}{id, line, c})
	}
	ask := ""
	if c.NeedsApproval {
		ask = ", ask"
	}
	safetext.Fprintf(p.out, "%-8s %s%s\n", c.Risk, safetext.Exact(id), ask)
	for _, ch := range c.Changes {
		safetext.Fprintf(p.out, "         %s: %s, %s\n", safetext.Exact(ch.Path), ch.Class, ch.Risk)
	}
	for _, r := range c.Reasons {
		safetext.Fprintf(p.out, "         %s: %s (%s)\n", safetext.Exact(r.Path), r.Why, r.Rule)
	}
	return nil
}
