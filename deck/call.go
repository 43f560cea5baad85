package deck

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/skills"
	"github.com/drawbridge-mcp/drawbridge/internal/spotlight"
)

// A callTarget is what a call turned out to mean.
type callTarget struct {
	// spec is what the guards are asked about, kind what it is to them.
	spec drawbridge.Spec
	kind string
	// card is set for a shipped card, which runs here. Everything else goes to spec.Server.
	card drawbridge.Card
	// ownName is the name or URI as the server knows it, edits what makes the params say so; said is what the caller
	// wrote instead, empty where they wrote the same.
	ownName, calledAs string
	edits             []rawjson.Edit
	// ownArguments are what of the arguments the server knows by other names. held and next say why it may not be
	// called, unfit that the params are not what we gave out.
	ownArguments         map[string]string
	heldReason, nextStep string
	paramsErr            error
}

// Call carries out a tools/call: it finds the card, asks the guards, and runs it. The error is a *drawbridge.Fault: one
// NotFound for a card that does not exist or that the caller may not know of, PolicyBlocked for one that a guard
// refused, InvalidInput for params that say no name, or else what the card gave.
func (d *Deck) Call(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	call.Method = mcp.MethodToolsCall
	return d.Do(ctx, call)
}

// Do carries out a call by its method: tools/call, prompts/get, resources/read, completion/complete, or one of an
// extension that the caller and a server have. All of them take the same way, under the terms of [Deck.Call].
func (d *Deck) Do(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	ctx, entry := d.callLog.Begin(ctx, call)
	result, err := d.dispatch(ctx, call)
	if err = entry.End(result, err); err != nil {
		return drawbridge.Result{}, err
	}
	return result, nil
}

// dispatch takes a call the way of its method.
func (d *Deck) dispatch(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	switch call.Method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead, mcp.MethodComplete:
		return d.callListed(ctx, call)
	case mcp.MethodDirectoryRead:
		return d.callSkillMethod(ctx, call)
	}
	switch prefix, _, _ := strings.Cut(call.Method, "/"); prefix {
	case "tasks":
		return d.callTaskMethod(ctx, call)
	case "skills":
		return d.callSkillMethod(ctx, call)
	}
	return d.callExtension(ctx, call)
}

// callListed carries out a call to what the deck lists.
func (d *Deck) callListed(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	p, err := ReadParams(call.Method, call.Params)
	if err != nil {
		return drawbridge.Result{}, err
	}
	if d.isSearchCall(call, p.Name) {
		return d.callSearchCard(ctx, call, p)
	}
	t, err := d.findTarget(ctx, call, p)
	if err != nil {
		return drawbridge.Result{}, err
	}
	return d.callGuarded(ctx, call, t, p)
}

// callGuarded takes a call the rest of its way, once it is known what it is about.
func (d *Deck) callGuarded(ctx context.Context, call drawbridge.Call, t callTarget,
	p callParams) (drawbridge.Result, error) {
	r := stateBinding{
		Principal: call.Caller.Principal, Server: t.spec.Server, Method: call.Method, Own: t.ownName,
		Arguments: p.Arguments,
	}
	if p.State != nil {
		state, err := d.sealer.openState(p.State, r)
		if t.edits = append(t.edits, rawjson.Put(state, "requestState")); err != nil {
			t.paramsErr = fmt.Errorf("requestState: %w", err)
		}
	}
	if name, ok := findRenamedArgument(call.Params, t.ownArguments); ok {
		t.paramsErr = fmt.Errorf("the arguments have %q, which has another name here", clip(name))
	}
	verdict, err := d.decideCall(ctx, call, t)
	if err == nil {
		err = audit.RecordIntent(ctx, call, p.Arguments, t.spec, verdict)
	}
	if err != nil {
		return drawbridge.Result{}, err
	}
	call.Params = rawjson.Apply(t.serverParams(call.Params), t.edits...)
	pass := d.resultFilter(call, t.spec.Server, string(t.spec.Name), t.ownName)
	result, err := d.runTarget(ctx, t, call)
	if err == nil && call.Method == mcp.MethodSkillsGet {
		result.Raw, err = d.vetSkills(ctx, t.spec.Server, result.Raw)
	}
	if err != nil {
		return drawbridge.Result{}, pass.ApplyToError(ctx, err)
	}
	result.Raw = d.hideResources(call.Caller, call.Method, t, result.Raw)
	result.Raw = d.rewriteLinks(call.Caller, call.Method, t.spec.Server, t.restoreURIs(call.Method, result.Raw))
	if result.Raw, err = pass.Apply(ctx, result.Raw); err != nil {
		return drawbridge.Result{}, err
	}
	result.Raw = d.sealer.sealResultState(result.Raw, r)
	return result, nil
}

// resultFilter says what is done to a server's result. It is asked for before the call, in whose course the server's
// row may leave. One that has left before is in doubt: nobody knows any more what it said, so its result is fenced,
// and held back where it meets a rule.
func (d *Deck) resultFilter(call drawbridge.Call, server drawbridge.ServerID, card,
	tool string) spotlight.ResultFilter {
	switch m := d.view.Load().server(server); {
	case server == "":
		return spotlight.ResultFilter{}
	case m != nil:
		return d.resultGuard.FilterFor(call, server, card, tool, m.Spotlight, m.HoldResults)
	}
	yes := true
	return d.resultGuard.FilterFor(call, server, card, tool, &yes, yes)
}

// callerURI is a URI of the server's as the caller knows it, who asked by one themselves.
func (t callTarget) callerURI(own string) string {
	switch {
	case t.calledAs == "":
		return own
	case own == t.ownName:
		return t.calledAs
	}
	return naming.QualifyLike(t.spec.Server, t.calledAs, own)
}

// restoreURIs gives a result with the URIs that the caller asked by: who asks for one wants to find it in the answer.
func (t callTarget) restoreURIs(method string, result json.RawMessage) json.RawMessage {
	if t.calledAs == "" {
		return result
	}
	switch method {
	case mcp.MethodResourcesRead:
		return naming.MapURIs(result, "contents", t.callerURI)
	case mcp.MethodDirectoryRead:
		return naming.MapURIs(result, "resources", t.callerURI)
	case mcp.MethodSkillsGet:
		if entry := rawjson.Get(result, "skill"); entry != nil {
			return rawjson.Apply(result, rawjson.Put(skills.MapURIs(entry, t.callerURI), "skill"))
		}
	}
	return result
}

// runTarget hands the call to the card, or to the server where it is no card's.
func (d *Deck) runTarget(ctx context.Context, t callTarget, call drawbridge.Call) (result drawbridge.Result,
	err error) {
	if t.card == nil {
		return d.sendToServer(ctx, t, call)
	}
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("a card panicked", "card", t.spec.Name, "panic", panicMessage(p), "at", panicLocation())
			result, err = drawbridge.Result{}, drawbridge.AsFault(fmt.Errorf("card %s: panic", t.spec.Name))
		}
	}()
	return t.card.Run(ctx, call)
}

// findTarget finds what a call is about.
func (d *Deck) findTarget(ctx context.Context, call drawbridge.Call, p callParams) (callTarget, error) {
	switch {
	case call.Method == mcp.MethodToolsCall:
		it, err := d.findItem(ctx, call.Caller, tools, p.Name)
		if err != nil {
			return callTarget{}, err
		}
		t := it.asTarget()
		if it.spec.Server == "" {
			t.card = it.card
		}
		return t.withOwnName(p.Name, "name"), nil
	case call.Method == mcp.MethodPromptsGet:
		it, err := d.findItem(ctx, call.Caller, prompts, p.Name)
		if err != nil {
			return callTarget{}, err
		}
		return it.asTarget().withOwnName(p.Name, "name"), nil
	case call.Method == mcp.MethodResourcesRead:
		t, err := d.findResource(ctx, call.Caller, p.Name)
		return t.withOwnName(p.Name, "uri"), err
	case call.Method == mcp.MethodComplete && p.RefType == promptRefType:
		it, err := d.findItem(ctx, call.Caller, prompts, p.Name)
		if err != nil {
			return callTarget{}, err
		}
		return it.asTarget().withOwnName(p.Name, "ref", "name"), nil
	case call.Method == mcp.MethodComplete && p.RefType == resourceRefType:
		t, err := d.findCompletionRef(ctx, call.Caller, p.Name)
		return t.withOwnName(p.Name, "ref", "uri"), err
	}
	return callTarget{}, faultInvalid(call.Method, fmt.Errorf("no such reference %q", clip(p.RefType)))
}

// findItem finds a card or a prompt. Before it says that there is none it waits for servers that are about to appear.
func (d *Deck) findItem(ctx context.Context, caller drawbridge.Caller, k itemKind, name string) (*item, error) {
	look := func() *item { return d.view.Load().indexForMethod(k.list).findByName(caller, name) }
	it := look()
	if it == nil && d.beforeUnknown != nil {
		d.waitForName(ctx, caller, name, func() bool { return look() != nil })
		it = look()
	}
	if it == nil {
		audit.NoteHidden(ctx, d.view.Load().hiddenReason(caller, k, name))
		return nil, faultUnknown(k.word, name)
	}
	return it, nil
}

// waitForName waits for the servers that could bring the name, and no longer than until it is there.
func (d *Deck) waitForName(ctx context.Context, caller drawbridge.Caller, name string, there func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer d.OnEvent(func(Event) {
		if there() {
			cancel()
		}
	})()
	if !there() { // it may have come before anybody listened
		d.beforeUnknown(ctx, caller, name)
	}
}

func (it *item) asTarget() callTarget {
	return callTarget{spec: it.spec, kind: it.kind, ownName: it.spec.Tool, ownArguments: it.offer.ownArguments,
		heldReason: it.offer.heldReason, nextStep: it.offer.nextStep}
}

// withOwnName adds the edit that makes the params say what the server knows, where the caller said something else.
func (t callTarget) withOwnName(said string, path ...string) callTarget {
	if said != t.ownName {
		t.calledAs = said
		t.edits = append(t.edits, rawjson.Put(rawjson.Quote(t.ownName), path...))
	}
	return t
}

// authorizeCall asks the guards, and has the call recorded before it may go on.
func (d *Deck) authorizeCall(ctx context.Context, call drawbridge.Call, kind string, spec drawbridge.Spec) error {
	verdict, err := d.decideCall(ctx, call, callTarget{kind: kind, spec: spec})
	if err != nil {
		return err
	}
	return audit.RecordIntent(ctx, call, nil, spec, verdict)
}

// decideCall asks the guards, and a person where they want that and nothing else is in the way, and has the call
// counted: all must allow, and the verdict is the last one's that names a rule, or the first that wanted a person
// asked. The caller holds the scopes already, or the card was not found.
func (d *Deck) decideCall(ctx context.Context, call drawbridge.Call, t callTarget) (drawbridge.Verdict, error) {
	q := Question{Caller: call.Caller, Kind: t.kind, Spec: t.spec, Method: call.Method, Params: call.Params}
	verdict, asked, err := d.guards.check(ctx, q)
	if err == nil {
		if against, bar := t.heldVerdict(call.Method); bar != nil {
			verdict, err = against, bar
		}
	}
	if err == nil && len(asked) > 0 {
		// which took its time: the rules may be others now
		if err = d.requestApproval(ctx, call, t, asked); err == nil {
			if now, _, no := d.guards.check(ctx, q); no != nil {
				verdict, err = now, no
			}
		}
	}
	if err == nil {
		q.Params = t.serverParams(q.Params) // how calls end is counted by what was sent
		if now, no := d.guards.countCall(ctx, q); no != nil {
			verdict, err = now, no
		}
	}
	if err != nil {
		audit.NoteRefusal(ctx, t.spec, verdict)
	}
	return verdict, err
}

func methodNoun(method string) string { return methodSubject(method) }

func faultUnknown(word, name string) error { return unknownNameFault(word, name) }

func faultNoMethod(method string) error { return methodNotFoundFault(method) }

func faultInvalid(method string, cause error) error { return invalidParamsFault(method, cause) }

// clip shortens what a caller wrote to what an error may repeat.
func clip(text string) string { return clipText(text) }
