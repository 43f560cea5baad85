package shield

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/rows"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// errUnread is around what says why a row cannot be read.
type errUnread struct{ error }

// each gives the rows of a file to do. Those that cannot be read are told, the first with the reason, and have the command fail.
func (d Desk) each(file string, p *printer, do func(rows.Row) error) error {
	in := d.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	err := rows.Each(in, func(r rows.Row) error {
		err := do(r)
		if bad, ok := errors.AsType[errUnread](err); ok {
			if p.unread++; p.unread == 1 {
				safetext.Fprintf(d.Err, "✗ %s:%d: %v\n", file, r.N, bad)
			}
			return nil
		}
		return err
	})
	if p.unread > 1 {
		safetext.Fprintf(d.Err, "✗ %s: %d rows cannot be read\n", file, p.unread)
	}
	p.failed = p.failed || p.unread > 0
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// kinds are the members of a row that say what it has.
func kinds() []string {
	return []string{"tool", "prompt", "resource", "template", "elicitation", "instructions", "text", "result"}
}

// row looks at a row, and prints what comes of it. An errUnread says that it cannot be read, and was printed.
func (p *printer) row(s *shield.Shield, r rows.Row) error {
	o := outcome{ID: r.ID(), Kind: "row"}
	err := r.Err
	if err == nil {
		err = o.take(s, r.Line)
	}
	if err != nil {
		o.Line, o.Verdict, o.Reasons, o.Canonical = r.N, shield.Held, []shield.Reason{unread(r.N, err)}, nil
	}
	if printed := p.print(o); printed != nil || err == nil {
		return printed
	}
	return errUnread{err}
}

// unread is the reason for which a row is held that cannot be read.
func unread(line int, err error) shield.Reason {
	at := 0
	if syntax, ok := errors.AsType[*wire.SyntaxError](err); ok {
		at = syntax.Offset
	}
	return shield.Reason{At: at, Rule: "unreadable", Did: "held", Why: fmt.Sprintf("line %d cannot be read: %v", line, err)}
}

// take judges what a row has. An error says why there is nothing that could be judged.
func (o *outcome) take(s *shield.Shield, line []byte) error {
	kind, raw, err := subject(line)
	if err != nil {
		return err
	}
	o.Kind = kind
	if err := belongs(kind, raw); err != nil {
		return fmt.Errorf("%q: %w", kind, err)
	}
	return o.judge(s, kind, raw)
}

// subject says what a row has: itself, where it is a definition, in which all texts are looked at whatever their members are called.
// A row that has two things is refused: who reads it may read the other one.
func subject(line []byte) (kind string, raw json.RawMessage, err error) {
	name := wire.Get(line, "name")
	if name != nil && (wire.Get(line, "description") != nil || wire.Get(line, "inputSchema") != nil) {
		return "tool", line, nil
	}
	for m := range wire.Members(line) {
		for _, k := range kinds() {
			switch {
			case !m.Is(k):
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
	return "row", nil, fmt.Errorf("neither a tool nor an object with one of %s", strings.Join(kinds(), ", "))
}

// belongs says why a value is not what its kind says, such as a definition that is null: a server could not say it.
func belongs(kind string, raw json.RawMessage) error {
	switch first := raw[0]; kind {
	case "text", "instructions":
		if first != '"' {
			return errors.New("it is no text")
		}
	case "result":
		if first != '{' && first != '[' && first != '"' {
			return errors.New("it is no result")
		}
	default:
		if first != '{' {
			return errors.New("it is no definition, which is an object")
		}
		if kind != "elicitation" {
			return rows.Fits(raw)
		}
	}
	return nil
}

// pair compares the definitions of a row, and prints what comes of it. An errUnread says that it cannot be read, and was printed.
func (p *printer) pair(s *shield.Shield, r rows.Row) error {
	before, after := wire.Get(r.Line, "before"), wire.Get(r.Line, "after")
	err := r.Err
	switch {
	case err != nil:
	case before == nil || after == nil, string(before) == "null", string(after) == "null":
		err = errors.New(`no "before", or no "after"`)
	}
	var c shield.Comparison
	line := 0
	if err == nil {
		c, err = s.Compare(before, after)
	}
	if err != nil {
		line = r.N
		c = shield.Comparison{Risk: shield.High, Ask: true, Changes: []shield.Change{}, Reasons: []shield.Reason{unread(r.N, err)}}
	}
	if printed := p.printPair(r.ID(), line, c); printed != nil || err == nil {
		return printed
	}
	return errUnread{err}
}

// printPair prints what came of a pair. Its line is 0 for one that could be read.
func (p *printer) printPair(id string, line int, c shield.Comparison) error {
	if p.json {
		return manners.PrintJSONLine(p.out, struct {
			ID   string `json:"id"`
			Line int    `json:"line,omitempty"`
			shield.Comparison
		}{id, line, c})
	}
	ask := ""
	if c.Ask {
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
