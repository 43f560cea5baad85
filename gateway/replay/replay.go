// Package replay holds calls that are on record against rules: what would they make of them now?
//
// It promises never to guess. A record says less than the call did: secrets are left out of arguments, and what a caller held is not
// kept. Where a verdict turns on such a thing there is none, and it is said what is missing. It judges by rules only: what a
// limit, a pin or a person made of a call is not compared.
package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/audit"
	"github.com/drawbridge-mcp/drawbridge/policy"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Fate is what became of a recorded call under other rules.
type Fate string

// The fates.
const (
	// Same is a call whose verdict is what it was, Changed one with another.
	Same    Fate = "same"
	Changed Fate = "changed"
	// Unclear is a call that the record says too little of.
	Unclear Fate = "unclear"
	// Unknown is one of a name that nobody had, or not for that caller: rules were not asked about it.
	Unknown Fate = "unknown"
	// Barred is one that something else than the rules refused.
	Barred Fate = "barred"
)

// A Verdict is what came of judging one call.
type Verdict struct {
	Fate Fate
	// Before is the effect on record, Rule what decided then, as the record has it.
	Before, Rule string
	// Now is what the rules decide; the zero value unless the Fate is Same or Changed.
	Now policy.Decision
	// Why says what is missing; for Unclear only.
	Why string
}

// A Bench has what is known beside the records. Every function is needed.
type Bench struct {
	// Policy has the rules; nil are none, which allow everything.
	Policy *policy.Policy
	// Look gives what is listed by a name now, and of which kind; false where nothing is.
	Look func(name string) (kind string, spec drawbridge.Spec, ok bool)
	// Trust gives the word of a server's row; false for one that is not configured.
	Trust func(id drawbridge.ServerID) (string, bool)
	// Dirs gives the directories that relative paths may start at in calls of a server that is configured.
	Dirs func(id drawbridge.ServerID) []string
	// Scopes gives what a caller holds now; false where only they could show it.
	Scopes func(who audit.Caller) ([]drawbridge.Scope, bool)
}

// Judge judges a record of the kind audit.Call.
func (b Bench) Judge(r audit.Record) Verdict {
	v := Verdict{Before: r.Effect, Rule: r.Rule}
	switch {
	case r.Effect == "":
		v.Fate = Unknown
		return v
	case r.Effect == drawbridge.Deny.String() && r.Reason != policy.Denied:
		v.Fate = Barred
		return v
	case b.Policy == nil:
		v.Now = policy.Decision{Effect: drawbridge.Allow, Why: "there are no rules"}
		return v.compared()
	}
	q, gaps, ok := b.question(r)
	if !ok {
		v.Fate, v.Why = Unclear, "what it was about is not on record"
		return v
	}
	// A name and a version are one text on record: where a blank stands in it, either may have it.
	for i, name := range names(r.Caller.Client) {
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
		return Verdict{Fate: Unclear, Before: v.Before, Rule: v.Rule, Why: lack}
	}
	return v.compared()
}

func (v Verdict) compared() Verdict {
	v.Fate = Same
	if v.Now.Effect.String() != v.Before {
		v.Fate = Changed
	}
	return v
}

// names are what a client may have called itself that is on record with its version: all of it but what follows a blank.
func names(client string) (all []string) {
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

// question is what the rules are asked about a call, with what is missing; false where it is not known what that is.
func (b Bench) question(r audit.Record) (q policy.Question, g policy.Gaps, ok bool) {
	kind, ok := b.kindOf(r)
	if !ok {
		return q, g, false
	}
	q = policy.Question{
		Kind: kind, Method: r.Method, Caller: drawbridge.Caller{Kind: callerKind(r.Caller.Kind), Principal: r.Caller.Principal},
		Spec: drawbridge.Spec{Server: drawbridge.ServerID(r.Server), Name: drawbridge.CardName(r.Card), Tool: r.Tool},
	}
	if q.Spec.Tool == "" {
		q.Spec.Tool = r.Card // one that we ship
	}
	g.Name = clipped(r.Card) || clipped(r.Tool)
	g.Client = clipped(r.Caller.Client)
	if q.Caller.Scopes, ok = b.Scopes(r.Caller); !ok {
		g.Scopes = true
	}
	q.Trust = "trusted"
	if r.Server != "" {
		q.Trust, ok = b.Trust(drawbridge.ServerID(r.Server))
		g.Trust, g.Dirs = !ok, !ok
		q.Dirs = b.Dirs(q.Spec.Server)
	}
	switch kind {
	case policy.Tool, policy.Prompt, policy.Resource, policy.Template:
		q.Spec.Definition, ok = b.definition(r)
		g.Annotations = !ok
	}
	if kind == policy.Tool || kind == policy.Prompt && r.Method == wire.MethodPromptsGet {
		q.Params, g.Arguments, g.AllArguments = arguments(r)
	}
	if r.Method == wire.MethodComplete { // what it completed is not on record
		g.AllArguments = true
	}
	return q, g, true
}

// definition is the card's as it was then; false where what is listed now has another.
func (b Bench) definition(r audit.Record) (json.RawMessage, bool) {
	if r.Definition == "" {
		return nil, true
	}
	_, spec, ok := b.Look(r.Card)
	sum := sha256.Sum256(spec.Definition)
	if !ok || hex.EncodeToString(sum[:]) != r.Definition {
		return nil, false
	}
	return spec.Definition, true
}

// kindOf says what a call was about.
func (b Bench) kindOf(r audit.Record) (kind string, ok bool) {
	switch r.Method {
	case wire.MethodToolsCall:
		return policy.Tool, true
	case wire.MethodPromptsGet:
		return policy.Prompt, true
	case wire.MethodResourcesRead, wire.MethodSubscribe, wire.MethodDirectoryRead, wire.MethodSkillsGet:
		return policy.Resource, true
	case wire.MethodComplete:
		kind, spec, ok := b.Look(r.Card)
		return kind, ok && string(spec.Server) == r.Server
	}
	if strings.HasPrefix(r.Method, "tasks/") {
		return policy.Task, true
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

// arguments gives params with the arguments on record, the names of those of which not all is kept, and whether any may be missing.
func arguments(r audit.Record) (params json.RawMessage, missing []string, all bool) {
	switch {
	case r.Digest == "": // there were none
		return nil, nil, false
	case len(r.Arguments) == 0:
		return nil, nil, true
	}
	params = wire.Apply(nil, wire.Put(r.Arguments, "arguments"))
	if sum := sha256.Sum256(r.Arguments); hex.EncodeToString(sum[:]) == r.Digest {
		return params, nil, false
	}
	if texts, names := holes(r.Arguments); names || texts && r.Arguments[0] != '{' {
		return nil, nil, true
	}
	for m := range wire.Members(r.Arguments) {
		if texts, _ := holes(m.Value); texts {
			name, _ := wire.Text(m.Name)
			missing = append(missing, name)
		}
	}
	return params, missing, false
}

// cut is in a text of which the record has the beginning only.
const cut = " bytes, sha256 "

// holed says whether a text in arguments on record may say less than what was sent.
func holed(text string) bool {
	return strings.Contains(text, drawbridge.Redacted) || strings.Contains(text, "…[") && strings.Contains(text, cut) ||
		text == "[nested too deep]" || text == "[too much to keep]"
}

// clipped says whether a name on record may say less than what was sent.
func clipped(name string) bool {
	return strings.Contains(name, drawbridge.Redacted) || strings.HasSuffix(name, "…")
}

// holes says whether one of the texts in a value is holed, and whether one of the names in it is.
func holes(value json.RawMessage) (texts, names bool) {
	if text, ok := wire.Text(value); ok {
		return holed(text), false
	}
	look := func(inner json.RawMessage) {
		t, n := holes(inner)
		texts, names = texts || t, names || n
	}
	switch {
	case len(value) == 0:
	case value[0] == '[':
		for item := range wire.Elements(value) {
			look(item)
		}
	case value[0] == '{':
		for m := range wire.Members(value) {
			name, ok := wire.Text(m.Name)
			names = names || !ok || holed(name)
			look(m.Value)
		}
	}
	return texts, names
}
