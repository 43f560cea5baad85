package guards

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
	"github.com/google/go-cmp/cmp"
)

const definition = `{"name":"fs__write","annotations":{"readOnlyHint":true}}`

func bench(t testing.TB, rules ...drawbridge.Rule) Replayer {
	t.Helper()
	p, err := policy.New(drawbridge.Rules{Default: drawbridge.Allow, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return Replayer{
		Policy: p,
		Lookup: func(name string) (string, drawbridge.Spec, bool) {
			kind := map[string]string{"fs__write": policy.KindTool, "fs__hello": policy.KindPrompt}[name]
			return kind, drawbridge.Spec{Server: "fs", Definition: json.RawMessage(definition)}, kind != ""
		},
		TrustLevel: func(id drawbridge.ServerID) (string, bool) { return "untrusted", id == "fs" },
		RelativeDirs: func(id drawbridge.ServerID) []string {
			return map[drawbridge.ServerID][]string{"fs": {"/srv/root"}}[id]
		},
		Scopes: func(who audit.Caller) ([]drawbridge.Scope, bool) {
			return []drawbridge.Scope{"*"}, who.Principal == "ada"
		},
	}
}

// kept is a call as the audit keeps it, by rules.
func kept(t testing.TB, rules audit.RedactionRules, change func(*audit.Record)) audit.Record {
	t.Helper()
	sum := sha256.Sum256([]byte(definition))
	r := audit.Record{
		ID: "1", Kind: audit.Call, Caller: audit.Caller{Kind: "external", Principal: "ada", Client: "cursor 1.0"},
		Method: "tools/call",
		Card:   "fs__write", Server: "fs", Tool: "write", Definition: hex.EncodeToString(sum[:]), Effect: "allow",
	}
	change(&r)
	out, err := audit.DecodeRecord(rules.AppendRecord(nil, &r))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// notOnRecord ends the reasons why a rule cannot be judged.
const notOnRecord = ", which is not on record"

func denying(r drawbridge.Rule) drawbridge.Rule { r.Effect = drawbridge.Deny; return r }

func withArguments(arguments string) func(*audit.Record) {
	return func(r *audit.Record) { r.Arguments = json.RawMessage(arguments) }
}

// withServerGone makes a record that of a server which is not configured any more.
func withServerGone(arguments string) func(*audit.Record) {
	return func(r *audit.Record) { r.Server, r.Arguments, r.Definition = "gone", json.RawMessage(arguments), "" }
}

// asked makes a record that of a call which a person was asked about, by a rule or a guard.
func asked(rule string) func(*audit.Record) {
	return func(r *audit.Record) { r.Effect, r.Rule = "ask", rule }
}

// labelled makes a record that of a call of a run with a label.
func labelled(label string) func(*audit.Record) {
	return func(r *audit.Record) { r.Label, r.Arguments = label, json.RawMessage(`{}`) }
}

func textIs(value string) []drawbridge.Condition {
	return []drawbridge.Condition{{Name: "text", Is: []json.RawMessage{json.RawMessage(value)}}}
}

var judgeCases = map[string]struct {
	keep   audit.ArgumentMode
	change func(*audit.Record)
	rule   drawbridge.Rule
	fate   ReplayOutcome
	why    string
}{
	"as before": {"", withArguments(`{}`), denying(drawbridge.Rule{Tools: []string{"read"}}), OutcomeSame, ""},
	"by its name": {"", withArguments(`{}`), denying(drawbridge.Rule{Tools: []string{"fs:write"}}),
		OutcomeChanged, ""},
	"asked by the mode of the agent": {"", asked("agent"), denying(drawbridge.Rule{Tools: []string{"read"}}),
		OutcomeSame, ""},
	"asked for its values": {"", asked("flow"), denying(drawbridge.Rule{Tools: []string{"read"}}), OutcomeSame, ""},
	"asked, and denied now": {"", asked("agent"), denying(drawbridge.Rule{Tools: []string{"write"}}),
		OutcomeChanged, ""},
	"asked by a rule": {"", asked("rules.toml:3"), denying(drawbridge.Rule{Tools: []string{"read"}}),
		OutcomeChanged, ""},
	"by the label of its run": {"", labelled("untrusted"), denying(drawbridge.Rule{When: `run.integrity == "untrusted"`}),
		OutcomeChanged, ""},
	"by another label": {"", labelled("project, private"), denying(drawbridge.Rule{When: `run.integrity == "untrusted"`}),
		OutcomeSame, ""},
	"by private text": {"", labelled("untrusted, private"), denying(drawbridge.Rule{When: `run.confidentiality == "private"`}),
		OutcomeChanged, ""},
	"by text that may be public": {"", labelled("untrusted"), denying(drawbridge.Rule{When: `run.confidentiality == "public"`}),
		OutcomeUnclear, "rule 1 looks at the confidentiality of the run" + notOnRecord},
	"without a label": {"", labelled(""), denying(drawbridge.Rule{When: `run.integrity == "untrusted"`}),
		OutcomeUnclear, "rule 1 looks at the label of the run" + notOnRecord},
	"by its argument": {"", withArguments(`{ "text" : "a b" }`), denying(drawbridge.Rule{Args: textIs(`"a *"`)}),
		OutcomeChanged, ""},
	"one that was hidden": {"", withArguments(`{"text":"password=hunter2"}`),
		denying(drawbridge.Rule{Args: textIs(`"a"`)}),
		OutcomeUnclear, "rule 1 looks at the argument text" + notOnRecord},
	"another was hidden": {"", withArguments(`{"text":"a","password":"x"}`),
		denying(drawbridge.Rule{Args: textIs(`"a"`)}),
		OutcomeChanged, ""},
	"one that was cut": {"", withArguments(`{"text":"` + strings.Repeat("x", 2000) + `"}`),
		denying(drawbridge.Rule{Args: textIs(`"x*"`)}), OutcomeUnclear, "rule 1 looks at the argument text" +
			notOnRecord},
	"one within it was": {"", withArguments(`{"text":{"a":["ghp_0123456789abcdefghij"]}}`),
		denying(drawbridge.Rule{Args: textIs(`"a"`)}), OutcomeUnclear, "rule 1 looks at the argument text" +
			notOnRecord},
	"a name was hidden": {"", withArguments(`{"ghp_0123456789abcdefghij":1}`),
		denying(drawbridge.Rule{Args: textIs(`"a"`)}),
		OutcomeUnclear, "rule 1 looks at the arguments" + notOnRecord},
	"it looks like it": {"", withArguments(`{"text":"[redacted]"}`),
		denying(drawbridge.Rule{Args: textIs(`"[redacted]"`)}),
		OutcomeChanged, ""},
	"too much was sent": {"", withArguments(`{"text":[` + strings.Repeat(`"0123456789",`, 2000) + `1]}`),
		denying(drawbridge.Rule{Args: textIs(`"a"`)}), OutcomeUnclear, "rule 1 looks at the arguments" +
			notOnRecord},
	"nested too deep": {"", withArguments(`{"text":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`),
		denying(drawbridge.Rule{Args: textIs(`"a"`)}), OutcomeUnclear, "rule 1 looks at the argument text" +
			notOnRecord},
	"only a hash is kept": {audit.KeepHash, withArguments(`{"text":"a"}`),
		denying(drawbridge.Rule{Args: textIs(`"a"`)}), OutcomeUnclear,
		"rule 1 looks at the arguments" + notOnRecord},
	"and does not matter": {audit.KeepHash, withArguments(`{"text":"a"}`),
		denying(drawbridge.Rule{Tools: []string{"write"}}),
		OutcomeChanged, ""},
	"all is kept": {audit.KeepFull, withArguments(`{"password":"x","text":"a"}`),
		denying(drawbridge.Rule{ArgsMatch: `x`}),
		OutcomeChanged, ""},
	"there were none": {"", withArguments(""), denying(drawbridge.Rule{When: `!has(args.x)`}), OutcomeChanged, ""},
	"one is there twice": {"", withArguments(`{"text":"a","Text":"b"}`), drawbridge.Rule{Effect: drawbridge.Allow,
		Args: textIs(`"a"`)}, OutcomeChanged, ""},
	"what it says it is": {"", withArguments(`{}`), denying(drawbridge.Rule{When: `annotations.readOnlyHint`}),
		OutcomeChanged, ""},
	"what it said then": {"", func(r *audit.Record) { r.Definition = "abc" },
		denying(drawbridge.Rule{When: `annotations.readOnlyHint`}), OutcomeUnclear,
		"rule 1 looks at the annotations" + notOnRecord},
	"the trust of one gone": {"", func(r *audit.Record) { r.Server = "gone" },
		denying(drawbridge.Rule{Trust: []string{"trusted"}}), OutcomeUnclear,
		"rule 1 looks at the trust of the server" +
			notOnRecord},
	"scopes of a stranger": {"", func(r *audit.Record) { r.Caller.Principal = "bob@idp" },
		denying(drawbridge.Rule{Scopes: []drawbridge.Scope{"x"}}), OutcomeUnclear,
		"rule 1 looks at the scopes of the caller" +
			notOnRecord},
	"a client": {"", withArguments(`{}`), denying(drawbridge.Rule{Clients: []string{"cursor"}}), OutcomeChanged, ""},
	"one of two words": {"", func(r *audit.Record) { r.Caller.Client = "Claude Code 2" },
		denying(drawbridge.Rule{Clients: []string{"claude code"}}), OutcomeUnclear,
		"the record does not separate the client's name from its version"},
	"by its first word": {"", func(r *audit.Record) { r.Caller.Client = "Claude Code 2" },
		denying(drawbridge.Rule{Clients: []string{"claude*"}}), OutcomeChanged, ""},
	"a card of ours": {"", func(r *audit.Record) { r.Card, r.Server, r.Tool = "drawbridge_scopes", "", "" },
		denying(drawbridge.Rule{Servers: []string{"drawbridge"}}), OutcomeChanged, ""},
	"a file": {"", func(r *audit.Record) {
		r.Method, r.Card, r.Tool, r.Definition = "resources/read", "file:///etc/x", "file:///etc/x", ""
	}, denying(drawbridge.Rule{Paths: []string{"/etc/**"}}), OutcomeChanged, ""},
	"a relative path": {"", withArguments(`{"path":"secret/x"}`),
		denying(drawbridge.Rule{Paths: []string{"/srv/root/secret/**"}}),
		OutcomeChanged, ""},
	"a relative path of gone": {"", withServerGone(`{"path":"x"}`),
		denying(drawbridge.Rule{Paths: []string{"/srv/**"}}), OutcomeUnclear,
		"rule 1 looks at where relative paths start" + notOnRecord},
	"one that decides so": {"", withServerGone(`{"path":"x"}`), denying(drawbridge.Rule{Paths: []string{"x"}}),
		OutcomeChanged, ""},
	"one absolute to some": {"", withServerGone(`{"path":"~/../x"}`),
		denying(drawbridge.Rule{Paths: []string{"/srv/**"}}),
		OutcomeUnclear, "rule 1 looks at where relative paths start" + notOnRecord},
	"one in a text": {"", withServerGone(`{"paths":"[\"x\"]"}`), denying(drawbridge.Rule{Paths: []string{"/srv/**"}}),
		OutcomeUnclear, "rule 1 looks at where relative paths start" + notOnRecord},
	"an absolute path": {"", withServerGone(`{"path":"/x"}`), denying(drawbridge.Rule{Paths: []string{"/srv/**"}}),
		OutcomeSame, ""},
	"one that is not allowed": {"", withServerGone(`{"path":"x"}`), drawbridge.Rule{Effect: drawbridge.Allow,
		Paths: []string{"/srv/**"}}, OutcomeSame, ""},
	"a URI with a password": {"", func(r *audit.Record) {
		r.Method, r.Card, r.Tool, r.Definition = "resources/read", "x://u:hunter2@h/", "x://u:hunter2@h/", ""
	}, denying(drawbridge.Rule{Resources: []string{"x://*@h/"}}), OutcomeUnclear,
		"rule 1 looks at the name" + notOnRecord},
	"a completion": {"", func(r *audit.Record) { r.Method, r.Card = "completion/complete", "fs__hello" },
		denying(drawbridge.Rule{Prompts: []string{"*"}}), OutcomeChanged, ""},
	"one of what is gone": {"", func(r *audit.Record) { r.Method, r.Card = "completion/complete", "fs__bye" },
		denying(drawbridge.Rule{}), OutcomeUnclear, "the record does not name the kind of item"},
	"a task": {"", func(r *audit.Record) { r.Method, r.Card, r.Tool = "tasks/get", "t", "t" },
		denying(drawbridge.Rule{Methods: []string{"tasks/*"}}), OutcomeChanged, ""},
	"an extension": {"", func(r *audit.Record) { r.Method = "x/y" }, denying(drawbridge.Rule{Methods: []string{"x/*"}}),
		OutcomeChanged, ""},
	"a drawbridge.Rule refused it": {"", func(r *audit.Record) {
		r.Effect, r.Reason, r.Outcome = "deny",
			policy.DeniedMessage, audit.Refused
	}, drawbridge.Rule{Effect: drawbridge.Allow}, OutcomeChanged, ""},
	"and does again": {"", func(r *audit.Record) {
		r.Effect, r.Reason, r.Outcome = "deny",
			policy.DeniedMessage, audit.Refused
	}, denying(drawbridge.Rule{}), OutcomeSame, ""},
	"a limit did": {"", func(r *audit.Record) {
		r.Effect, r.Reason, r.Outcome = "deny", "it is too much",
			audit.Refused
	}, drawbridge.Rule{Effect: drawbridge.Allow}, OutcomeOtherGuard, ""},
	"an unknown name": {"", func(r *audit.Record) { r.Effect, r.Server, r.Outcome = "", "", audit.Unknown },
		denying(drawbridge.Rule{}), OutcomeUnknownName, ""},
	"a person was asked": {"", func(r *audit.Record) { r.Effect = "ask" }, drawbridge.Rule{Effect: drawbridge.Ask},
		OutcomeSame, ""},
}

func TestJudge(t *testing.T) {
	for name, tt := range judgeCases {
		got := bench(t, tt.rule).Judge(kept(t, audit.RedactionRules{Arguments: tt.keep}, tt.change))
		if got.Outcome != tt.fate || got.Why != tt.why {
			t.Errorf("%s: %s %q, want %s %q", name, got.Outcome, got.Why, tt.fate, tt.why)
		}
	}
}

func TestWithoutRulesAllIsAllowed(t *testing.T) {
	b := bench(t)
	b.Policy = nil
	got := b.Judge(kept(t, audit.RedactionRules{}, func(r *audit.Record) { r.Effect, r.Rule = "ask", "f:1" }))
	want := ReplayVerdict{Outcome: OutcomeChanged, Before: "ask", Rule: "f:1",
		Now: policy.Decision{Effect: drawbridge.Allow, Why: "no rules are configured"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzArguments: whatever the audit kept of arguments, either they are all there, or it is said what is missing.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":"b"}`, `{"token":"x","a":["--key","v"]}`, `[1]`,
		`{"a":"ghp_0123456789abcdefghij"}`, `{"a":1e400}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		if !json.Valid(sent) {
			return
		}
		r := kept(t, audit.RedactionRules{}, func(r *audit.Record) { r.Arguments = sent })
		params, missing, all := recordedArguments(r)
		if all || len(missing) > 0 || len(sent) == 0 {
			return
		}
		var was, is any
		var p struct{ Arguments json.RawMessage }
		if json.Unmarshal(params, &p) != nil || json.Unmarshal(sent, &was) != nil ||
			json.Unmarshal(p.Arguments, &is) != nil {
			return // a number that no double holds
		}
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("%s is on record as %s, and nothing is said to be missing", sent, p.Arguments)
		}
	})
}
