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

func TestJudge(t *testing.T) {
	type rule = drawbridge.Rule
	deny := func(r rule) rule { r.Effect = drawbridge.Deny; return r }
	with := func(arguments string) func(*audit.Record) {
		return func(r *audit.Record) { r.Arguments = json.RawMessage(arguments) }
	}
	gone := func(arguments string) func(*audit.Record) {
		return func(r *audit.Record) { r.Server, r.Arguments, r.Definition = "gone", json.RawMessage(arguments), "" }
	}
	text := func(value string) []drawbridge.Condition {
		return []drawbridge.Condition{{Name: "text", Is: []json.RawMessage{json.RawMessage(value)}}}
	}
	const missing = ", which is not on record"
	for name, tt := range map[string]struct {
		keep   audit.ArgumentMode
		change func(*audit.Record)
		rule   rule
		fate   ReplayOutcome
		why    string
	}{
		"as before":       {"", with(`{}`), deny(rule{Tools: []string{"read"}}), OutcomeSame, ""},
		"by its name":     {"", with(`{}`), deny(rule{Tools: []string{"fs:write"}}), OutcomeChanged, ""},
		"by its argument": {"", with(`{ "text" : "a b" }`), deny(rule{Args: text(`"a *"`)}), OutcomeChanged, ""},
		"one that was hidden": {"", with(`{"text":"password=hunter2"}`), deny(rule{Args: text(`"a"`)}),
			OutcomeUnclear, "rule 1 looks at the argument text" + missing},
		"another was hidden": {"", with(`{"text":"a","password":"x"}`), deny(rule{Args: text(`"a"`)}),
			OutcomeChanged, ""},
		"one that was cut": {"", with(`{"text":"` + strings.Repeat("x", 2000) + `"}`),
			deny(rule{Args: text(`"x*"`)}), OutcomeUnclear, "rule 1 looks at the argument text" + missing},
		"one within it was": {"", with(`{"text":{"a":["ghp_0123456789abcdefghij"]}}`),
			deny(rule{Args: text(`"a"`)}), OutcomeUnclear, "rule 1 looks at the argument text" + missing},
		"a name was hidden": {"", with(`{"ghp_0123456789abcdefghij":1}`), deny(rule{Args: text(`"a"`)}),
			OutcomeUnclear, "rule 1 looks at the arguments" + missing},
		"it looks like it": {"", with(`{"text":"[redacted]"}`), deny(rule{Args: text(`"[redacted]"`)}),
			OutcomeChanged, ""},
		"too much was sent": {"", with(`{"text":[` + strings.Repeat(`"0123456789",`, 2000) + `1]}`),
			deny(rule{Args: text(`"a"`)}), OutcomeUnclear, "rule 1 looks at the arguments" + missing},
		"nested too deep": {"", with(`{"text":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`),
			deny(rule{Args: text(`"a"`)}), OutcomeUnclear, "rule 1 looks at the argument text" + missing},
		"only a hash is kept": {audit.KeepHash, with(`{"text":"a"}`), deny(rule{Args: text(`"a"`)}), OutcomeUnclear,
			"rule 1 looks at the arguments" + missing},
		"and does not matter": {audit.KeepHash, with(`{"text":"a"}`), deny(rule{Tools: []string{"write"}}),
			OutcomeChanged, ""},
		"all is kept": {audit.KeepFull, with(`{"password":"x","text":"a"}`), deny(rule{ArgsMatch: `x`}),
			OutcomeChanged, ""},
		"there were none": {"", with(""), deny(rule{When: `!has(args.x)`}), OutcomeChanged, ""},
		"one is there twice": {"", with(`{"text":"a","Text":"b"}`), rule{Effect: drawbridge.Allow,
			Args: text(`"a"`)}, OutcomeChanged, ""},
		"what it says it is": {"", with(`{}`), deny(rule{When: `annotations.readOnlyHint`}), OutcomeChanged, ""},
		"what it said then": {"", func(r *audit.Record) { r.Definition = "abc" },
			deny(rule{When: `annotations.readOnlyHint`}), OutcomeUnclear, "rule 1 looks at the annotations" + missing},
		"the trust of one gone": {"", func(r *audit.Record) { r.Server = "gone" },
			deny(rule{Trust: []string{"trusted"}}), OutcomeUnclear, "rule 1 looks at the trust of the server" +
				missing},
		"scopes of a stranger": {"", func(r *audit.Record) { r.Caller.Principal = "bob@idp" },
			deny(rule{Scopes: []drawbridge.Scope{"x"}}), OutcomeUnclear, "rule 1 looks at the scopes of the caller" +
				missing},
		"a client": {"", with(`{}`), deny(rule{Clients: []string{"cursor"}}), OutcomeChanged, ""},
		"one of two words": {"", func(r *audit.Record) { r.Caller.Client = "Claude Code 2" },
			deny(rule{Clients: []string{"claude code"}}), OutcomeUnclear,
			"the name of the client cannot be told from its version"},
		"by its first word": {"", func(r *audit.Record) { r.Caller.Client = "Claude Code 2" },
			deny(rule{Clients: []string{"claude*"}}), OutcomeChanged, ""},
		"a card of ours": {"", func(r *audit.Record) { r.Card, r.Server, r.Tool = "drawbridge_scopes", "", "" },
			deny(rule{Servers: []string{"drawbridge"}}), OutcomeChanged, ""},
		"a file": {"", func(r *audit.Record) {
			r.Method, r.Card, r.Tool, r.Definition = "resources/read", "file:///etc/x", "file:///etc/x", ""
		}, deny(rule{Paths: []string{"/etc/**"}}), OutcomeChanged, ""},
		"a relative path": {"", with(`{"path":"secret/x"}`), deny(rule{Paths: []string{"/srv/root/secret/**"}}),
			OutcomeChanged, ""},
		"a relative path of gone": {"", gone(`{"path":"x"}`), deny(rule{Paths: []string{"/srv/**"}}), OutcomeUnclear,
			"rule 1 looks at where relative paths start" + missing},
		"one that decides so": {"", gone(`{"path":"x"}`), deny(rule{Paths: []string{"x"}}), OutcomeChanged, ""},
		"one absolute to some": {"", gone(`{"path":"~/../x"}`), deny(rule{Paths: []string{"/srv/**"}}),
			OutcomeUnclear, "rule 1 looks at where relative paths start" + missing},
		"one in a text": {"", gone(`{"paths":"[\"x\"]"}`), deny(rule{Paths: []string{"/srv/**"}}),
			OutcomeUnclear, "rule 1 looks at where relative paths start" + missing},
		"an absolute path": {"", gone(`{"path":"/x"}`), deny(rule{Paths: []string{"/srv/**"}}), OutcomeSame, ""},
		"one that is not allowed": {"", gone(`{"path":"x"}`), rule{Effect: drawbridge.Allow,
			Paths: []string{"/srv/**"}}, OutcomeSame, ""},
		"a URI with a password": {"", func(r *audit.Record) {
			r.Method, r.Card, r.Tool, r.Definition = "resources/read", "x://u:hunter2@h/", "x://u:hunter2@h/", ""
		}, deny(rule{Resources: []string{"x://*@h/"}}), OutcomeUnclear, "rule 1 looks at the name" + missing},
		"a completion": {"", func(r *audit.Record) { r.Method, r.Card = "completion/complete", "fs__hello" },
			deny(rule{Prompts: []string{"*"}}), OutcomeChanged, ""},
		"one of what is gone": {"", func(r *audit.Record) { r.Method, r.Card = "completion/complete", "fs__bye" },
			deny(rule{}), OutcomeUnclear, "what it was about is not on record"},
		"a task": {"", func(r *audit.Record) { r.Method, r.Card, r.Tool = "tasks/get", "t", "t" },
			deny(rule{Methods: []string{"tasks/*"}}), OutcomeChanged, ""},
		"an extension": {"", func(r *audit.Record) { r.Method = "x/y" }, deny(rule{Methods: []string{"x/*"}}),
			OutcomeChanged, ""},
		"a rule refused it": {"", func(r *audit.Record) {
			r.Effect, r.Reason, r.Outcome = "deny",
				policy.DeniedMessage, audit.Refused
		}, rule{Effect: drawbridge.Allow}, OutcomeChanged, ""},
		"and does again": {"", func(r *audit.Record) {
			r.Effect, r.Reason, r.Outcome = "deny",
				policy.DeniedMessage, audit.Refused
		}, deny(rule{}), OutcomeSame, ""},
		"a limit did": {"", func(r *audit.Record) {
			r.Effect, r.Reason, r.Outcome = "deny", "it is too much",
				audit.Refused
		}, rule{Effect: drawbridge.Allow}, OutcomeOtherGuard, ""},
		"nobody had it": {"", func(r *audit.Record) { r.Effect, r.Server, r.Outcome = "", "", audit.Unknown },
			deny(rule{}), OutcomeUnknownName, ""},
		"a person was asked": {"", func(r *audit.Record) { r.Effect = "ask" }, rule{Effect: drawbridge.Ask},
			OutcomeSame, ""},
	} {
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
		Now: policy.Decision{Effect: drawbridge.Allow, Why: "there are no rules"}}
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
