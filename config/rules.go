package config

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A rulesReader reads the tables of rules in one file.
type rulesReader struct {
	// File is the path of the file. Home is the directory that "~/" means in paths.
	File, Home string

	defaultEffect         drawbridge.Effect
	policy, authorization *[]drawbridge.Rule // nil if the table is not in force
	inactive              *configfile.Error
}

// looksLikeRules reports whether an unknown table seems to be a misspelled table of rules. Such a table is an error,
// because calls would be unrestricted without its rules.
func looksLikeRules(section configfile.Member) bool {
	_, policy := section.Value.Find("policy")
	_, authorization := section.Value.Find("authorization")
	return policy || authorization || section.Name == "policy" || section.Name == "authorization"
}

// readPolicyTable reads the table "tools.policy". The table is in force unless it contains enabled = false. The error
// joins a *configfile.Error for each mistake. A rule with a mistake is still stored, without its invalid members; the
// caller must not use the rules if there is an error.
func (r *rulesReader) readPolicyTable(v configfile.Node) error {
	r.defaultEffect = drawbridge.Allow
	t := ruleTable{name: "tools.policy", inForce: true, effectMember: "effect", fallback: &r.defaultEffect,
		readMember: readPolicyMember}
	err := r.readTable(v, &t)
	if t.inForce {
		r.policy = &t.rules
	}
	return err
}

// readAuthorizationTable reads the table "tools.authorization". The table is in force only if it contains enabled =
// true. The error is as for readPolicyTable.
func (r *rulesReader) readAuthorizationTable(v configfile.Node) error {
	t := ruleTable{name: "tools.authorization", effectMember: "action", readMember: readAuthorizationMember}
	err := r.readTable(v, &t)
	if t.inForce {
		r.authorization = &t.rules
	} else if n := len(t.rules); n > 0 && !t.setsInForce {
		r.inactive = configfile.ErrorAt(t.firstRuleLine,
			"tools.authorization has rules (%d), and none is in force: it does not say enabled = true", n)
	}
	return err
}

// inactiveRules returns an error if "tools.authorization" has rules but does not contain enabled; nil otherwise.
func (r *rulesReader) inactiveRules() *configfile.Error { return r.inactive }

// activeRules returns the rules in force: first those of "tools.policy", then those of "tools.authorization". It
// returns nil if neither table is in force.
func (r *rulesReader) activeRules() *drawbridge.Rules {
	out := drawbridge.Rules{Default: drawbridge.Allow, Home: r.Home}
	if r.policy != nil {
		out.Default, out.Rules = r.defaultEffect, *r.policy
	}
	if r.authorization != nil {
		out.Rules = append(out.Rules, *r.authorization...)
	}
	if r.policy == nil && r.authorization == nil {
		return nil
	}
	return &out
}

// A ruleTable contains the rules of one table, and the parameters for reading this table.
type ruleTable struct {
	name    string
	inForce bool
	// setsInForce is set if the table contains the member enabled. firstRuleLine is the line of its first rule.
	setsInForce   bool
	firstRuleLine int
	// effectMember is the name of the member that contains a rule's effect. fallback receives the default effect; it is
	// nil if the table has no default effect.
	effectMember string
	fallback     *drawbridge.Effect
	readMember   func(rule *drawbridge.Rule, m configfile.Member) error
	rules        []drawbridge.Rule
}

func (r *rulesReader) readTable(v configfile.Node, t *ruleTable) error {
	if v.Kind != configfile.Table {
		return configfile.ErrorAt(v.Line, "%s must be a table", t.name)
	}
	known := []string{"enabled", "rules"}
	if t.fallback != nil {
		known = append(known, "default_effect")
	}
	var errs []error
	for _, m := range v.Members {
		var err error
		switch {
		case m.Name == "enabled":
			var ok bool
			t.setsInForce = true
			if t.inForce, ok = m.Value.Bool(); !ok {
				err = configfile.ErrorAt(m.Line, "%s.enabled must be true or false", t.name)
			}
		case m.Name == "default_effect" && t.fallback != nil:
			*t.fallback, err = readEffect(m, t.name+".default_effect")
		case m.Name == "rules":
			err = r.readRuleList(m, t)
		default:
			err = configfile.ErrorAt(m.Line, "unknown setting %q%s", t.name+"."+m.Name,
				configfile.DidYouMean(m.Name, known))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (r *rulesReader) readRuleList(m configfile.Member, t *ruleTable) error {
	if m.Value.Kind != configfile.List {
		return configfile.ErrorAt(m.Line, "%s.rules must be a list of tables: begin each with [[%s.rules]]", t.name,
			t.name)
	}
	var errs []error
	for _, item := range m.Value.Items {
		if item.Kind != configfile.Table {
			errs = append(errs, configfile.ErrorAt(item.Line, "%s.rules must be a list of tables", t.name))
			continue
		}
		if t.firstRuleLine == 0 {
			t.firstRuleLine = item.Line
		}
		rule := drawbridge.Rule{At: r.File + ":" + strconv.Itoa(item.Line)}
		said := false
		for _, m := range item.Members {
			var err error
			if m.Name == t.effectMember {
				said = true
				rule.Effect, err = readEffect(m, t.effectMember)
			} else {
				err = t.readMember(&rule, m)
			}
			errs = append(errs, err)
		}
		if !said {
			errs = append(errs, configfile.ErrorAt(item.Line, "the rule has no %s", t.effectMember))
		}
		t.rules = append(t.rules, rule)
	}
	return errors.Join(errs...)
}

func readEffect(m configfile.Member, name string) (drawbridge.Effect, error) {
	word, _ := m.Value.TextValue()
	for _, e := range []drawbridge.Effect{drawbridge.Allow, drawbridge.Ask, drawbridge.Deny} {
		if word == e.String() {
			return e, nil
		}
	}
	return drawbridge.Deny, configfile.ErrorAt(m.Line, "%s must be %s", name,
		configfile.JoinOr([]string{"allow", "ask", "deny"}))
}

// readAuthorizationMember reads a member of a rule in tools.authorization, except the effect. Such a rule has only the
// member tools.
func readAuthorizationMember(rule *drawbridge.Rule, m configfile.Member) error {
	if m.Name == "tools" {
		return readStrings(&rule.Tools, m)
	}
	return configfile.ErrorAt(m.Line, "unknown member %q%s", m.Name, configfile.DidYouMean(m.Name,
		[]string{"action", "tools"}))
}

// readPolicyMember reads a member of a rule in tools.policy, except the effect.
func readPolicyMember(rule *drawbridge.Rule, m configfile.Member) error {
	switch m.Name {
	case "tool", "tools":
		return readStrings(&rule.Tools, m)
	case "prompts":
		return readStrings(&rule.Prompts, m)
	case "resources":
		return readStrings(&rule.Resources, m)
	case "servers":
		return readStrings(&rule.Servers, m)
	case "methods":
		return readStrings(&rule.Methods, m)
	case "trust", "trust_level":
		return readStrings(&rule.Trust, m)
	case "callers":
		return readStrings(&rule.Callers, m)
	case "clients":
		return readStrings(&rule.Clients, m)
	case "kinds":
		return readStrings(&rule.Kinds, m)
	case "paths":
		return readStrings(&rule.Paths, m)
	case "args_match":
		return readString(&rule.ArgsMatch, m)
	case "when":
		return readString(&rule.When, m)
	case "args":
		return readArgConditions(rule, m)
	case "scopes":
		var scopes []string
		if err := readStrings(&scopes, m); err != nil {
			return err
		}
		rule.Scopes = []drawbridge.Scope{}
		for _, s := range scopes {
			rule.Scopes = append(rule.Scopes, drawbridge.Scope(s))
		}
		return nil
	}
	return configfile.ErrorAt(m.Line, "unknown member %q%s", m.Name, configfile.DidYouMean(m.Name, policyMemberNames()))
}

// policyMemberNames returns the names of the members of a rule in tools.policy.
func policyMemberNames() []string {
	return []string{"effect", "tools", "prompts", "resources", "servers", "methods", "trust", "callers", "clients",
		"kinds", "scopes",
		"paths", "args_match", "args", "when"}
}

// readStrings reads a string or a list of strings. It returns an error if *to is already set. This happens if a rule
// contains both names of a member that has two names, such as tool and tools.
func readStrings(to *[]string, m configfile.Member) error {
	list, ok := m.Value.TextValues()
	if word, one := m.Value.TextValue(); one {
		list, ok = []string{word}, true
	}
	switch {
	case !ok:
		return configfile.ErrorAt(m.Line, "%s must be a string or a list of strings", m.Name)
	case *to != nil:
		return configfile.ErrorAt(m.Line, "%s is written twice", m.Name)
	case len(list) == 0:
		return configfile.ErrorAt(m.Line, "%s is empty: leave it out to mean all", m.Name)
	}
	*to = list
	return nil
}

func readString(to *string, m configfile.Member) error {
	word, ok := m.Value.TextValue()
	if !ok || word == "" {
		return configfile.ErrorAt(m.Line, "%s must be a string that is not empty", m.Name)
	}
	*to = word
	return nil
}

// readArgConditions reads the table "args", which maps the name of each argument to its condition.
func readArgConditions(rule *drawbridge.Rule, m configfile.Member) error {
	if m.Value.Kind != configfile.Table || len(m.Value.Members) == 0 {
		return configfile.ErrorAt(m.Line, "args must be a table of arguments and their conditions")
	}
	var errs []error
	for _, m := range m.Value.Members {
		c := drawbridge.Condition{Name: m.Name}
		var err error
		if m.Value.Kind == configfile.Table {
			err = readArgCondition(&c, m)
		} else {
			c.Is, err = readConditionValues(m, "args."+m.Name)
		}
		if err != nil {
			errs = append(errs, err)
			continue // a condition without its invalid member would match other calls
		}
		rule.Args = append(rule.Args, c)
	}
	return errors.Join(errs...)
}

func readArgCondition(c *drawbridge.Condition, of configfile.Member) error {
	var errs []error
	for _, m := range of.Value.Members {
		name := "args." + of.Name + "." + m.Name
		var err error
		switch m.Name {
		case "is":
			c.Is, err = readConditionValues(m, name)
		case "not":
			c.Not, err = readConditionValues(m, name)
		case "matches":
			err = readString(&c.Matches, m)
		case "above":
			c.Above, err = readConditionNumber(m, name)
		case "below":
			c.Below, err = readConditionNumber(m, name)
		case "present":
			flag, ok := m.Value.Bool()
			if !ok {
				err = configfile.ErrorAt(m.Line, "%s must be true or false", name)
			}
			c.Present = &flag
		default:
			err = configfile.ErrorAt(m.Line, "unknown member %q%s", name, configfile.DidYouMean(m.Name,
				[]string{"is", "not", "matches", "above", "below", "present"}))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// readConditionValues reads one value or a list of values that a condition compares with an argument.
func readConditionValues(m configfile.Member, name string) ([]json.RawMessage, error) {
	items := []configfile.Node{m.Value}
	if m.Value.Kind == configfile.List {
		items = m.Value.Items
	}
	out := []json.RawMessage{}
	for _, item := range items {
		if !slices.Contains([]configfile.ValueKind{configfile.Text, configfile.Number, configfile.Boolean}, item.Kind) {
			return nil, configfile.ErrorAt(m.Line, "%s must be strings, numbers or booleans", name)
		}
		out = append(out, item.AppendJSON(nil, false))
	}
	if len(out) == 0 {
		return nil, configfile.ErrorAt(m.Line, "%s is empty", name)
	}
	return out, nil
}

func readConditionNumber(m configfile.Member, name string) (*float64, error) {
	f, err := strconv.ParseFloat(m.Value.Text, 64)
	if m.Value.Kind != configfile.Number || err != nil {
		return nil, configfile.ErrorAt(m.Line, "%s must be a number", name)
	}
	return &f, nil
}
