// Package rules reads the rules of drawbridge.toml: who may call what. It is strict: a member that it does not know, and
// a value that is not what it must be, refuse the whole file, since a rule that is read in part guards less than its
// author believes. Whether expressions and patterns make sense is for those to say who carry the rules out.
package rules

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// A Reader reads the tables of one file.
type Reader struct {
	// File is where they are written, Home what "~/" stands for in paths.
	File, Home string

	fallback              drawbridge.Effect
	policy, authorization *[]drawbridge.Rule // nil where it is not in force
	idle                  *doc.Error
}

// Meant says whether a table that is none of ours looks like one that has rules: a slip of the pen that would leave all
// calls unguarded.
func Meant(section doc.Member) bool {
	_, policy := section.Value.Find("policy")
	_, authorization := section.Value.Find("authorization")
	return policy || authorization || section.Name == "policy" || section.Name == "authorization"
}

// Policy reads the table "tools.policy", which is in force unless it says otherwise. The error is a *doc.Error.
func (r *Reader) Policy(v doc.Node) error {
	r.fallback = drawbridge.Allow
	t := table{where: "tools.policy", inForce: true, effect: "effect", fallback: &r.fallback, member: member}
	err := r.table(v, &t)
	if t.inForce {
		r.policy = &t.rules
	}
	return err
}

// Authorization reads the table "tools.authorization", which is in force where it says so. The error is a *doc.Error.
func (r *Reader) Authorization(v doc.Node) error {
	t := table{where: "tools.authorization", effect: "action", member: authorization}
	err := r.table(v, &t)
	if t.inForce {
		r.authorization = &t.rules
	} else if n := len(t.rules); n > 0 && !t.switched {
		r.idle = doc.Wrong(t.first, "tools.authorization has rules (%d), and none is in force: it does not say enabled = true", n)
	}
	return err
}

// Idle says that there are rules which nobody put in force, nor said that they are not to be; nil where there are none.
func (r *Reader) Idle() *doc.Error { return r.idle }

// Rules gives what was read: the rules of "tools.authorization" follow those of "tools.policy". It is nil where neither is
// in force.
func (r *Reader) Rules() *drawbridge.Rules {
	out := drawbridge.Rules{Default: drawbridge.Allow, Home: r.Home}
	if r.policy != nil {
		out.Default, out.Rules = r.fallback, *r.policy
	}
	if r.authorization != nil {
		out.Rules = append(out.Rules, *r.authorization...)
	}
	if r.policy == nil && r.authorization == nil {
		return nil
	}
	return &out
}

// A table is one that has rules.
type table struct {
	where   string
	inForce bool
	// switched says that the table says whether it is in force; first is the line of its first rule.
	switched bool
	first    int
	// effect is the member of a rule that says its effect, fallback takes the default effect; nil where there is none.
	effect   string
	fallback *drawbridge.Effect
	member   func(rule *drawbridge.Rule, m doc.Member) error
	rules    []drawbridge.Rule
}

func (r *Reader) table(v doc.Node, t *table) error {
	if v.Kind != doc.Table {
		return doc.Wrong(v.Line, "%s must be a table", t.where)
	}
	known := []string{"enabled", "rules"}
	if t.fallback != nil {
		known = append(known, "default_effect")
	}
	for _, m := range v.Members {
		var err error
		switch {
		case m.Name == "enabled":
			var ok bool
			t.switched = true
			if t.inForce, ok = m.Value.Flag(); !ok {
				err = doc.Wrong(m.Line, "%s.enabled must be true or false", t.where)
			}
		case m.Name == "default_effect" && t.fallback != nil:
			*t.fallback, err = effectOf(m, t.where+".default_effect")
		case m.Name == "rules":
			err = r.rules(m, t)
		default:
			err = doc.Wrong(m.Line, "unknown setting %q%s", t.where+"."+m.Name, doc.DidYouMean(m.Name, known))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) rules(m doc.Member, t *table) error {
	if m.Value.Kind != doc.List {
		return doc.Wrong(m.Line, "%s.rules must be a list of tables: begin each with [[%s.rules]]", t.where, t.where)
	}
	for _, item := range m.Value.Items {
		if item.Kind != doc.Table {
			return doc.Wrong(item.Line, "%s.rules must be a list of tables", t.where)
		}
		if t.first == 0 {
			t.first = item.Line
		}
		rule := drawbridge.Rule{At: r.File + ":" + strconv.Itoa(item.Line)}
		said := false
		for _, m := range item.Members {
			var err error
			if m.Name == t.effect {
				said = true
				rule.Effect, err = effectOf(m, t.effect)
			} else {
				err = t.member(&rule, m)
			}
			if err != nil {
				return err
			}
		}
		if !said {
			return doc.Wrong(item.Line, "the rule has no %s", t.effect)
		}
		t.rules = append(t.rules, rule)
	}
	return nil
}

func effectOf(m doc.Member, name string) (drawbridge.Effect, error) {
	word, _ := m.Value.Word()
	for _, e := range []drawbridge.Effect{drawbridge.Allow, drawbridge.Ask, drawbridge.Deny} {
		if word == e.String() {
			return e, nil
		}
	}
	return drawbridge.Deny, doc.Wrong(m.Line, "%s must be %s", name, doc.Choice([]string{"allow", "ask", "deny"}))
}

// authorization reads a member of a rule of tools.authorization, which knows tools only.
func authorization(rule *drawbridge.Rule, m doc.Member) error {
	if m.Name == "tools" {
		return words(&rule.Tools, m)
	}
	return doc.Wrong(m.Line, "unknown member %q%s", m.Name, doc.DidYouMean(m.Name, []string{"action", "tools"}))
}

// member reads a member of a rule of tools.policy.
func member(rule *drawbridge.Rule, m doc.Member) error {
	switch m.Name {
	case "tool", "tools":
		return words(&rule.Tools, m)
	case "prompts":
		return words(&rule.Prompts, m)
	case "resources":
		return words(&rule.Resources, m)
	case "servers":
		return words(&rule.Servers, m)
	case "methods":
		return words(&rule.Methods, m)
	case "trust", "trust_level":
		return words(&rule.Trust, m)
	case "callers":
		return words(&rule.Callers, m)
	case "clients":
		return words(&rule.Clients, m)
	case "kinds":
		return words(&rule.Kinds, m)
	case "paths":
		return words(&rule.Paths, m)
	case "args_match":
		return text(&rule.ArgsMatch, m)
	case "when":
		return text(&rule.When, m)
	case "args":
		return conditions(rule, m)
	case "scopes":
		var scopes []string
		if err := words(&scopes, m); err != nil {
			return err
		}
		rule.Scopes = []drawbridge.Scope{}
		for _, s := range scopes {
			rule.Scopes = append(rule.Scopes, drawbridge.Scope(s))
		}
		return nil
	}
	return doc.Wrong(m.Line, "unknown member %q%s", m.Name, doc.DidYouMean(m.Name, members()))
}

// members are what a rule of tools.policy may say.
func members() []string {
	return []string{"effect", "tools", "prompts", "resources", "servers", "methods", "trust", "callers", "clients", "kinds", "scopes",
		"paths", "args_match", "args", "when"}
}

// words reads a text, or a list of them. One member may not be said twice, under two names.
func words(to *[]string, m doc.Member) error {
	list, ok := m.Value.Words()
	if word, one := m.Value.Word(); one {
		list, ok = []string{word}, true
	}
	switch {
	case !ok:
		return doc.Wrong(m.Line, "%s must be a text or a list of texts", m.Name)
	case *to != nil:
		return doc.Wrong(m.Line, "%s is there twice", m.Name)
	case len(list) == 0:
		return doc.Wrong(m.Line, "%s is empty: leave it out to mean all", m.Name)
	}
	*to = list
	return nil
}

func text(to *string, m doc.Member) error {
	word, ok := m.Value.Word()
	if !ok || word == "" {
		return doc.Wrong(m.Line, "%s must be a text that is not empty", m.Name)
	}
	*to = word
	return nil
}

// conditions reads the table "args": what each argument must be.
func conditions(rule *drawbridge.Rule, m doc.Member) error {
	if m.Value.Kind != doc.Table || len(m.Value.Members) == 0 {
		return doc.Wrong(m.Line, "args must be a table of arguments and what they must be")
	}
	for _, m := range m.Value.Members {
		c := drawbridge.Condition{Name: m.Name}
		var err error
		if m.Value.Kind == doc.Table {
			err = conditionOf(&c, m)
		} else {
			c.Is, err = values(m, "args."+m.Name)
		}
		if err != nil {
			return err
		}
		rule.Args = append(rule.Args, c)
	}
	return nil
}

func conditionOf(c *drawbridge.Condition, of doc.Member) error {
	for _, m := range of.Value.Members {
		name := "args." + of.Name + "." + m.Name
		var err error
		switch m.Name {
		case "is":
			c.Is, err = values(m, name)
		case "not":
			c.Not, err = values(m, name)
		case "matches":
			err = text(&c.Matches, m)
		case "above":
			c.Above, err = number(m, name)
		case "below":
			c.Below, err = number(m, name)
		case "present":
			flag, ok := m.Value.Flag()
			if !ok {
				return doc.Wrong(m.Line, "%s must be true or false", name)
			}
			c.Present = &flag
		default:
			err = doc.Wrong(m.Line, "unknown member %q%s", name, doc.DidYouMean(m.Name, []string{"is", "not", "matches", "above", "below", "present"}))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// values reads what an argument may be, one thing or a list of them.
func values(m doc.Member, name string) ([]json.RawMessage, error) {
	items := []doc.Node{m.Value}
	if m.Value.Kind == doc.List {
		items = m.Value.Items
	}
	out := []json.RawMessage{}
	for _, item := range items {
		if !slices.Contains([]doc.Kind{doc.Text, doc.Number, doc.Boolean}, item.Kind) {
			return nil, doc.Wrong(m.Line, "%s must be texts, numbers or booleans", name)
		}
		out = append(out, item.AppendJSON(nil, false))
	}
	if len(out) == 0 {
		return nil, doc.Wrong(m.Line, "%s is empty", name)
	}
	return out, nil
}

func number(m doc.Member, name string) (*float64, error) {
	f, err := strconv.ParseFloat(m.Value.Text, 64)
	if m.Value.Kind != doc.Number || err != nil {
		return nil, doc.Wrong(m.Line, "%s must be a number", name)
	}
	return &f, nil
}
