package guards

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A ReplayOutcome states how the logged verdict on a call compares to the verdict of other rules.
type ReplayOutcome string

// The outcomes of a replay.
const (
	// OutcomeSame means that the verdict is unchanged, and OutcomeChanged that it is different.
	OutcomeSame    ReplayOutcome = "same"
	OutcomeChanged ReplayOutcome = "changed"
	// OutcomeUnclear means that the log entry contains too little data to decide.
	OutcomeUnclear ReplayOutcome = "unclear"
	// OutcomeUnknownName means that the called name did not exist, or was hidden from the caller. In this case no rule
	// decided about the call.
	OutcomeUnknownName ReplayOutcome = "unknown"
	// OutcomeOtherGuard means that a guard other than the rules refused the call.
	OutcomeOtherGuard ReplayOutcome = "barred"
)

// A ReplayVerdict is the result of replaying one logged call.
type ReplayVerdict struct {
	Outcome ReplayOutcome
	// Before is the verdict of the rules in the log, and Rule is the rule or the guard that decided according to it.
	Before, Rule string
	// Now is the decision of the new rules. It is set for OutcomeSame and OutcomeChanged.
	Now policy.Decision
	// Why is the reason why the replay cannot decide. It is set for OutcomeUnclear.
	Why string
}

// A Replayer decides about logged calls by given rules and the current configuration. Every function is required.
type Replayer struct {
	// Policy contains the rules; nil means no rules, which allows everything.
	Policy *policy.Policy
	// Lookup returns the item that is listed under a name now, and its kind. ok is false if there is no such item.
	Lookup func(name string) (kind string, spec drawbridge.Spec, ok bool)
	// TrustLevel returns the trust level of a server. It returns false for a server that is not configured.
	TrustLevel func(id drawbridge.ServerID) (string, bool)
	// RelativeDirs returns the directories to which a configured server may join relative paths in a call.
	RelativeDirs func(id drawbridge.ServerID) []string
	// Scopes returns the current scopes of a logged caller. It returns false if they cannot be determined.
	Scopes func(who audit.Caller) ([]drawbridge.Scope, bool)
}

// Judge decides about the logged call r by the rules, and compares the decision with the logged verdict. The kind of r
// must be audit.Call.
func (b Replayer) Judge(r audit.Record) ReplayVerdict {
	v := ReplayVerdict{Before: r.Effect, Rule: r.Rule}
	if v.Before == drawbridge.Ask.String() && askedByGuard(r.Rule) {
		v.Before = drawbridge.Allow.String() // the verdict of the rules
	}
	switch {
	case r.Effect == "":
		v.Outcome = OutcomeUnknownName
		return v
	case r.Effect == drawbridge.Deny.String() && r.Reason != policy.DeniedMessage:
		v.Outcome = OutcomeOtherGuard
		return v
	case b.Policy == nil:
		v.Now = policy.Decision{Effect: drawbridge.Allow, Why: "no rules are configured"}
		return v.withOutcome()
	}
	q, gaps, ok := b.policyQuestion(r)
	if !ok {
		v.Outcome, v.Why = OutcomeUnclear, "the record does not name the kind of item"
		return v
	}
	// A record contains the client's name and version as one text. Each blank in it may be the one between name and
	// version.
	for i, name := range possibleClientNames(r.Caller.Client) {
		q.Caller.Client, _ = json.Marshal(map[string]string{"name": name})
		d, lack := b.Policy.Replay(q, gaps)
		switch {
		case lack != "":
		case i == 0:
			v.Now = d
			continue
		case d.Effect == v.Now.Effect:
			continue
		default:
			lack = "the record does not separate the client's name from its version"
		}
		return ReplayVerdict{Outcome: OutcomeUnclear, Before: v.Before, Rule: v.Rule, Why: lack}
	}
	return v.withOutcome()
}

// askedByGuard reports whether the first guard that wanted a person to approve a call was not that of the rules. The
// rules are asked first, so they had allowed the call.
func askedByGuard(rule string) bool {
	first, _, _ := strings.Cut(rule, "; ")
	switch first {
	case agentRule, ownToolsRule, FlowRule:
		return true
	}
	return false
}

func (v ReplayVerdict) withOutcome() ReplayVerdict {
	v.Outcome = OutcomeSame
	if v.Now.Effect.String() != v.Before {
		v.Outcome = OutcomeChanged
	}
	return v
}

// possibleClientNames returns the names that a client may have declared. client is the logged text with name and
// version.
func possibleClientNames(client string) (all []string) {
	for i, c := range client {
		if c == ' ' {
			all = append(all, client[:i])
		}
	}
	if len(all) == 0 {
		return []string{client}
	}
	return all
}

// policyQuestion returns the request to package policy, and the fields that are unknown because the record does not
// contain them. ok is false if the kind of item is unknown.
func (b Replayer) policyQuestion(r audit.Record) (q policy.Request, g policy.UnknownFields, ok bool) {
	kind, ok := b.kindOf(r)
	if !ok {
		return q, g, false
	}
	q = policy.Request{
		Kind: kind, Method: r.Method, Caller: drawbridge.Caller{Kind: callerKind(r.Caller.Kind),
			Principal: r.Caller.Principal},
		Spec: drawbridge.Spec{Server: drawbridge.ServerID(r.Server), Name: drawbridge.CardName(r.Card), Tool: r.Tool},
	}
	if q.Spec.Tool == "" {
		q.Spec.Tool = r.Card // one of Drawbridge's own tools
	}
	g.Name = isIncompleteName(r.Card) || isIncompleteName(r.Tool)
	g.Client = isIncompleteName(r.Caller.Client)
	if q.Caller.Scopes, ok = b.Scopes(r.Caller); !ok {
		g.Scopes = true
	}
	q.Trust = "trusted"
	if r.Server != "" {
		q.Trust, ok = b.TrustLevel(drawbridge.ServerID(r.Server))
		g.Trust, g.Dirs = !ok, !ok
		q.Dirs = b.RelativeDirs(q.Spec.Server)
	}
	switch kind {
	case policy.KindTool, policy.KindPrompt, policy.KindResource, policy.KindTemplate:
		q.Spec.Definition, ok = b.definition(r)
		g.Annotations = !ok
	}
	if kind == policy.KindTool || kind == policy.KindPrompt && r.Method == mcp.MethodPromptsGet {
		q.Params, g.Arguments, g.AllArguments = recordedArguments(r)
	}
	q.Label, g.Confidentiality = recordedLabel(r)
	if r.Method == mcp.MethodComplete { // the completed argument is not recorded
		g.AllArguments = true
	}
	return q, g, true
}

// recordedLabel returns the label of the run of a call; nil if the record has none. The record says of a text that is
// not private neither that it is internal nor that it is public: then noConfidentiality is true.
func recordedLabel(r audit.Record) (label *flow.Label, noConfidentiality bool) {
	if r.Label == "" {
		return nil, true
	}
	var l flow.Label
	for word := range strings.SplitSeq(r.Label, ", ") {
		var err error
		if l, err = l.With(word); err != nil {
			return nil, true // a label of a later release
		}
	}
	return &l, l.Confidentiality != flow.Private
}

// definition returns the definition of the called item. ok is false if the item no longer exists or its definition has
// changed since the recorded call. If the record contains no definition, it returns nil and true.
func (b Replayer) definition(r audit.Record) (json.RawMessage, bool) {
	if r.Definition == "" {
		return nil, true
	}
	_, spec, ok := b.Lookup(r.Card)
	sum := sha256.Sum256(spec.Definition)
	if !ok || hex.EncodeToString(sum[:]) != r.Definition {
		return nil, false
	}
	return spec.Definition, true
}

// kindOf returns the kind of the item that a call used. ok is false if the kind cannot be determined.
func (b Replayer) kindOf(r audit.Record) (kind string, ok bool) {
	switch r.Method {
	case mcp.MethodToolsCall:
		return policy.KindTool, true
	case mcp.MethodPromptsGet:
		return policy.KindPrompt, true
	case mcp.MethodResourcesRead, mcp.MethodSubscribe, mcp.MethodDirectoryRead, mcp.MethodSkillsGet:
		return policy.KindResource, true
	case mcp.MethodComplete:
		kind, spec, ok := b.Lookup(r.Card)
		return kind, ok && string(spec.Server) == r.Server
	}
	if strings.HasPrefix(r.Method, "tasks/") {
		return policy.KindTask, true
	}
	return "", true // a method of an extension
}

func callerKind(word string) drawbridge.CallerKind {
	for k := drawbridge.Author; k <= drawbridge.Sandbox; k++ {
		if k.String() == word {
			return k
		}
	}
	return drawbridge.Nobody
}

// recordedArguments returns params with the logged arguments, and the names of the arguments that were logged
// incompletely. all reports whether every argument may be incomplete.
func recordedArguments(r audit.Record) (params json.RawMessage, missing []string, all bool) {
	switch {
	case r.Digest == "": // the call had no arguments
		return nil, nil, false
	case len(r.Arguments) == 0:
		return nil, nil, true
	}
	params = rawjson.Apply(nil, rawjson.Put(r.Arguments, "arguments"))
	if sum := sha256.Sum256(r.Arguments); hex.EncodeToString(sum[:]) == r.Digest {
		return params, nil, false
	}
	if texts, names := findIncomplete(r.Arguments); names || texts && r.Arguments[0] != '{' {
		return nil, nil, true
	}
	for m := range rawjson.Members(r.Arguments) {
		if texts, _ := findIncomplete(m.Value); texts {
			name, _ := rawjson.DecodeString(m.Name)
			missing = append(missing, name)
		}
	}
	return params, missing, false
}

// truncationMark is part of each logged text that was cut to its beginning.
const truncationMark = " bytes, sha256 "

// isIncompleteText reports whether a text in logged arguments was redacted or cut, so that it may differ from the
// original.
func isIncompleteText(text string) bool {
	return strings.Contains(text, drawbridge.Redacted) || strings.Contains(text, "…[") && strings.Contains(text,
		truncationMark) ||
		text == "[nested too deep]" || text == "[too much to keep]"
}

// isIncompleteName reports whether a logged name was redacted or cut, so that it may differ from the original.
func isIncompleteName(name string) bool {
	return strings.Contains(name, drawbridge.Redacted) || strings.HasSuffix(name, "…")
}

// findIncomplete searches a logged value at any depth. It reports whether any text in the value is incomplete, and
// whether any member name is incomplete.
func findIncomplete(value json.RawMessage) (texts, names bool) {
	if text, ok := rawjson.DecodeString(value); ok {
		return isIncompleteText(text), false
	}
	look := func(inner json.RawMessage) {
		t, n := findIncomplete(inner)
		texts, names = texts || t, names || n
	}
	switch {
	case len(value) == 0:
	case value[0] == '[':
		for item := range rawjson.Elements(value) {
			look(item)
		}
	case value[0] == '{':
		for m := range rawjson.Members(value) {
			name, ok := rawjson.DecodeString(m.Name)
			names = names || !ok || isIncompleteText(name)
			look(m.Value)
		}
	}
	return texts, names
}
