package deck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// resolve sets s.target to the tool, prompt, resource or other target that the params name. It does nothing if s.target
// already names a server.
func (d *Deck) resolve(ctx context.Context, s *callState) error {
	if s.target.spec.Server != "" {
		return nil
	}
	switch s.call.Method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead, mcp.MethodComplete:
		return d.resolveListed(ctx, s)
	case mcp.MethodDirectoryRead:
		return d.resolveSkill(ctx, s)
	}
	switch prefix, _, _ := strings.Cut(s.call.Method, "/"); prefix {
	case "tasks":
		return methodNotFoundFault(s.call.Method)
	case "skills":
		return d.resolveSkill(ctx, s)
	}
	return d.resolveExtension(ctx, s)
}

// resolveListed finds the target of a call to a tool, prompt or resource, or of a completion.
func (d *Deck) resolveListed(ctx context.Context, s *callState) (err error) {
	if s.params, err = ReadParams(s.call.Method, s.call.Params); err != nil {
		return err
	}
	if d.isSearchCall(s.call, s.params.Name) {
		return d.resolveSearchCall(ctx, s)
	}
	s.target, err = d.findTarget(ctx, s)
	return err
}

// findTarget returns the target that the params of the call name.
func (d *Deck) findTarget(ctx context.Context, s *callState) (callTarget, error) {
	method, name := s.call.Method, s.params.Name
	switch {
	case method == mcp.MethodToolsCall:
		it, err := d.findItem(ctx, s, tools)
		if err != nil {
			return callTarget{}, err
		}
		t := it.asTarget()
		if it.spec.Server == "" {
			t.card = it.card
		} else if asksToResume(s.call.Params) {
			return callTarget{}, notResumableFault(name)
		}
		return t.withOwnName(name, "name"), nil
	case method == mcp.MethodPromptsGet:
		it, err := d.findItem(ctx, s, prompts)
		if err != nil {
			return callTarget{}, err
		}
		return it.asTarget().withOwnName(name, "name"), nil
	case method == mcp.MethodResourcesRead:
		t, err := d.findResource(ctx, s.log, s.call.Caller, name)
		return t.withOwnName(name, "uri"), err
	case method == mcp.MethodComplete && s.params.RefType == promptRefType:
		it, err := d.findItem(ctx, s, prompts)
		if err != nil {
			return callTarget{}, err
		}
		return it.asTarget().withOwnName(name, "ref", "name"), nil
	case method == mcp.MethodComplete && s.params.RefType == resourceRefType:
		t, err := d.findCompletionRef(ctx, s.log, s.call.Caller, name)
		return t.withOwnName(name, "ref", "uri"), err
	}
	return callTarget{}, invalidParamsFault(method, fmt.Errorf("no such reference %q", clipText(s.params.RefType)))
}

// findItem returns the tool or prompt that the params name. If the name is unknown, it waits for servers that are about
// to appear, and then looks again.
func (d *Deck) findItem(ctx context.Context, s *callState, k itemKind) (*item, error) {
	caller, name := s.call.Caller, s.params.Name
	look := func() *item { return d.view.Load().indexForMethod(k.list).findByName(caller, name) }
	it := look()
	if it == nil && d.beforeUnknown != nil {
		d.waitForName(ctx, caller, name, func() bool { return look() != nil })
		it = look()
	}
	if it == nil {
		s.log.NoteHidden(d.view.Load().hiddenReason(caller, k, name))
		return nil, unknownNameFault(k.word, name)
	}
	return it, nil
}

// waitForName calls the function BeforeUnknown of the deck, which waits for the servers that may have the name. It
// stops this wait as soon as there returns true, which reports that the name is now known.
func (d *Deck) waitForName(ctx context.Context, caller drawbridge.Caller, name string, there func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer d.OnEvent(func(Event) {
		if there() {
			cancel()
		}
	})()
	if !there() { // the name may have appeared before the listener was added
		d.beforeUnknown(ctx, caller, name)
	}
}

// authorizeCall runs authorize for a request that does not go through [Deck.Do], such as a subscription. kind and spec
// describe the target for the guards.
func (d *Deck) authorizeCall(ctx context.Context, log *audit.LoggedCall, call drawbridge.Call, kind string,
	spec drawbridge.Spec) error {
	return d.authorize(ctx, &callState{call: call, log: log, target: callTarget{kind: kind, spec: spec}})
}

// authorize asks the guards and, if they require it, a person. Then it counts the call and writes the audit record that
// precedes the sending. An error means that the call must not be sent.
func (d *Deck) authorize(ctx context.Context, s *callState) error {
	if err := d.decide(ctx, s); err != nil {
		return err
	}
	return d.recordIntent(ctx, s)
}

// decide runs the stages that can refuse a call: checkGuards, approve and countCall.
func (d *Deck) decide(ctx context.Context, s *callState) error {
	return d.runStages(ctx, s, (*Deck).checkGuards, (*Deck).approve, (*Deck).countCall)
}

// decideOthers runs decide for each target in s.others. A refusal of one of them refuses the whole call.
func (d *Deck) decideOthers(ctx context.Context, s *callState) error {
	for _, other := range s.others {
		if err := d.decide(ctx, &callState{call: s.call, log: s.log, target: other}); err != nil {
			return err
		}
	}
	return nil
}

// asksToResume reports whether a call resumes an interrupted run, which only Drawbridge's own tool can do. A server must
// not get such a call: for it the call would be a new one.
func asksToResume(params json.RawMessage) bool {
	return rawjson.MayContain(params, mcp.MetaResume) && rawjson.Get(params, "_meta", mcp.MetaResume) != nil
}

func notResumableFault(name string) error {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.Transient, Step: "call " + clipText(name),
		Err: errors.New("the hub ended before the response, and the call may have taken effect"), Ambiguous: true,
		Next: "check the result before you call again"}
}
