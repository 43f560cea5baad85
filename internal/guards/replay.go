package guards

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A ReplayOutcome is what became of a recorded call under other rules.
type ReplayOutcome string

// The fates.
const (
	// OutcomeSame is a call whose verdict is what it was, Changed one with another.
	OutcomeSame    ReplayOutcome = "same"
	OutcomeChanged ReplayOutcome = "changed"
	// OutcomeUnclear is a call that the record says too little of.
	OutcomeUnclear ReplayOutcome = "unclear"
	// OutcomeUnknownName is one of a name that nobody had, or not for that caller: rules were not asked about it.
	OutcomeUnknownName ReplayOutcome = "unknown"
	// OutcomeOtherGuard is one that something else than the rules refused.
	OutcomeOtherGuard ReplayOutcome = "barred"
)

// A ReplayVerdict is what came of judging one call.
type ReplayVerdict struct {
	Outcome ReplayOutcome
	// Before is the effect on record, Rule what decided then, as the record has it.
	Before, Rule string
	// Now is what the rules decide; the zero value unless the Fate is Same or Changed.
	Now policy.Decision
	// Why says what is missing; for Unclear only.
	Why string
}

// A Replayer has what is known beside the records. Every function is needed.
type Replayer struct {
	// Policy has the rules; nil are none, which allow everything.
	Policy *policy.Policy
	// Lookup gives what is listed by a name now, and of which kind; false where nothing is.
	Lookup func(name string) (kind string, spec drawbridge.Spec, ok bool)
	// TrustLevel gives the word of a server's row; false for one that is not configured.
	TrustLevel func(id drawbridge.ServerID) (string, bool)
	// RelativeDirs gives the directories that relative paths may start at in calls of a server that is configured.
	RelativeDirs func(id drawbridge.ServerID) []string
	// Scopes gives what a caller holds now; false where only they could show it.
	Scopes func(who audit.Caller) ([]drawbridge.Scope, bool)
}

// Judge judges a record of the kind audit.Call.
func (b Replayer) Judge(r audit.Record) ReplayVerdict {
	v := ReplayVerdict{Before: r.Effect, Rule: r.Rule}
	switch {
	case r.Effect == "":
		v.Outcome = OutcomeUnknownName
		return v
	case r.Effect == drawbridge.Deny.String() && r.Reason != policy.DeniedMessage:
		v.Outcome = OutcomeOtherGuard
		return v
	case b.Policy == nil:
		v.Now = policy.Decision{Effect: drawbridge.Allow, Why: "there are no rules"}
		return v.withOutcome()
	}
	q, gaps, ok := b.policyQuestion(r)
	if !ok {
		v.Outcome, v.Why = OutcomeUnclear, "what it was about is not on record"
		return v
	}
	// A name and a version are one text on record: where a blank stands in it, either may have it.
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
			lack = "the name of the client cannot be told from its version"
		}
		return ReplayVerdict{Outcome: OutcomeUnclear, Before: v.Before, Rule: v.Rule, Why: lack}
	}
	return v.withOutcome()
}

func (v ReplayVerdict) withOutcome() ReplayVerdict {
	v.Outcome = OutcomeSame
	if v.Now.Effect.String() != v.Before {
		v.Outcome = OutcomeChanged
	}
	return v
}

// possibleClientNames are what a client may have called itself that is on record with its version: all of it but what
// follows a blank.
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

// policyQuestion is what the rules are asked about a call, with what is missing; false where it is not known what that
// is.
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
		q.Spec.Tool = r.Card // one that we ship
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
	if r.Method == mcp.MethodComplete { // what it completed is not on record
		g.AllArguments = true
	}
	return q, g, true
}

// definition is the card's as it was then; false where what is listed now has another.
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

// kindOf says what a call was about.
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
	return "", true // of an extension
}

func callerKind(word string) drawbridge.CallerKind {
	for k := drawbridge.Author; k <= drawbridge.Sandbox; k++ {
		if k.String() == word {
			return k
		}
	}
	return drawbridge.Nobody
}

// recordedArguments gives params with the arguments on record, the names of those of which not all is kept, and
// whether any may be missing.
func recordedArguments(r audit.Record) (params json.RawMessage, missing []string, all bool) {
	switch {
	case r.Digest == "": // there were none
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

// truncationMark is in a text of which the record has the beginning only.
const truncationMark = " bytes, sha256 "

// isIncompleteText says whether a text in arguments on record may say less than what was sent.
func isIncompleteText(text string) bool {
	return strings.Contains(text, drawbridge.Redacted) || strings.Contains(text, "…[") && strings.Contains(text,
		truncationMark) ||
		text == "[nested too deep]" || text == "[too much to keep]"
}

// isIncompleteName says whether a name on record may say less than what was sent.
func isIncompleteName(name string) bool {
	return strings.Contains(name, drawbridge.Redacted) || strings.HasSuffix(name, "…")
}

// findIncomplete says whether one of the texts in a value is holed, and whether one of the names in it is.
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
