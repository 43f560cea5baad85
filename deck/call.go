package deck

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/fence"
	"github.com/drawbridge-mcp/drawbridge/deck/gate"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
	"github.com/drawbridge-mcp/drawbridge/deck/mishap"
	"github.com/drawbridge-mcp/drawbridge/deck/offer"
	"github.com/drawbridge-mcp/drawbridge/deck/params"
	"github.com/drawbridge-mcp/drawbridge/deck/seal"
	"github.com/drawbridge-mcp/drawbridge/deck/skill"
	"github.com/drawbridge-mcp/drawbridge/deck/trail"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A target is what a call turned out to mean.
type target struct {
	// spec is what the guards are asked about, kind what it is to them.
	spec drawbridge.Spec
	kind string
	// card is set for a shipped card, which runs here. Everything else goes to spec.Server.
	card drawbridge.Card
	// own is the name or URI as the server knows it, edits what makes the params say so; said is what the caller wrote
	// instead, empty where they wrote the same.
	own, said string
	edits     []wire.Edit
	// names are what of the arguments the server knows by other names. held and next say why it may not be called, unfit that
	// the params are not what we gave out.
	names      map[string]string
	held, next string
	unfit      error
}

// Call carries out a tools/call: it finds the card, asks the guards, and runs it. The error is a *drawbridge.Fault: one
// NotFound for a card that does not exist or that the caller may not know of, PolicyBlocked for one that a guard refused,
// InvalidInput for params that say no name, or else what the card gave.
func (d *Deck) Call(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	call.Method = wire.MethodToolsCall
	return d.Do(ctx, call)
}

// Do carries out a call by its method: tools/call, prompts/get, resources/read, completion/complete, or one of an extension
// that the caller and a server have. All of them take the same way, under the terms of [Deck.Call].
func (d *Deck) Do(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	ctx, entry := d.trail.Enter(ctx, call)
	result, err := d.route(ctx, call)
	if err = entry.Leave(result, err); err != nil {
		return drawbridge.Result{}, err
	}
	return result, nil
}

// route takes a call the way of its method.
func (d *Deck) route(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	switch call.Method {
	case wire.MethodToolsCall, wire.MethodPromptsGet, wire.MethodResourcesRead, wire.MethodComplete:
		return d.do(ctx, call)
	case wire.MethodDirectoryRead:
		return d.doSkill(ctx, call)
	}
	switch prefix, _, _ := strings.Cut(call.Method, "/"); prefix {
	case "tasks":
		return d.doTask(ctx, call)
	case "skills":
		return d.doSkill(ctx, call)
	}
	return d.doExtension(ctx, call)
}

// do carries out a call to what the deck lists.
func (d *Deck) do(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	p, err := params.Read(call.Method, call.Params)
	if err != nil {
		return drawbridge.Result{}, err
	}
	if d.finds(call, p.Name) {
		return d.byFinder(ctx, call, p)
	}
	t, err := d.find(ctx, call, p)
	if err != nil {
		return drawbridge.Result{}, err
	}
	return d.carry(ctx, call, t, p)
}

// carry takes a call the rest of its way, once it is known what it is about.
func (d *Deck) carry(ctx context.Context, call drawbridge.Call, t target, p params.Params) (drawbridge.Result, error) {
	r := seal.Request{
		Principal: call.Caller.Principal, Server: t.spec.Server, Method: call.Method, Own: t.own, Arguments: p.Arguments,
	}
	if p.State != nil {
		state, err := d.sealer.Open(p.State, r)
		if t.edits = append(t.edits, wire.Put(state, "requestState")); err != nil {
			t.unfit = fmt.Errorf("requestState: %w", err)
		}
	}
	if name, ok := offer.Strays(call.Params, t.names); ok {
		t.unfit = fmt.Errorf("the arguments have %q, which has another name here", clip(name))
	}
	verdict, err := d.judge(ctx, call, t)
	if err == nil {
		err = trail.Pass(ctx, call, p.Arguments, t.spec, verdict)
	}
	if err != nil {
		return drawbridge.Result{}, err
	}
	call.Params = wire.Apply(t.params(call.Params), t.edits...)
	pass := d.passing(call, t.spec.Server, string(t.spec.Name), t.own)
	result, err := d.run(ctx, t, call)
	if err == nil && call.Method == wire.MethodSkillsGet {
		result.Raw, err = d.vetSkills(ctx, t.spec.Server, result.Raw)
	}
	if err != nil {
		return drawbridge.Result{}, pass.Fail(ctx, err)
	}
	result.Raw = d.unveiled(call.Caller, call.Method, t, result.Raw)
	result.Raw = d.linked(call.Caller, call.Method, t.spec.Server, t.public(call.Method, result.Raw))
	if result.Raw, err = pass.Take(ctx, result.Raw); err != nil {
		return drawbridge.Result{}, err
	}
	result.Raw = d.sealer.Result(result.Raw, r)
	return result, nil
}

// passing says what is done to a server's result. It is asked for before the call, in whose course the server's row may leave. One
// that has left before is in doubt: nobody knows any more what it said, so its result is fenced, and held back where it meets a rule.
func (d *Deck) passing(call drawbridge.Call, server drawbridge.ServerID, card, tool string) fence.Pass {
	switch m := d.view.Load().member(server); {
	case server == "":
		return fence.Pass{}
	case m != nil:
		return d.fences.Pass(call, server, card, tool, m.Fence, m.Hold)
	}
	yes := true
	return d.fences.Pass(call, server, card, tool, &yes, yes)
}

// uri is a URI of the server's as the caller knows it, who asked by one themselves.
func (t target) uri(own string) string {
	switch {
	case t.said == "":
		return own
	case own == t.own:
		return t.said
	}
	return label.Alike(t.spec.Server, t.said, own)
}

// public gives a result with the URIs that the caller asked by: who asks for one wants to find it in the answer.
func (t target) public(method string, result json.RawMessage) json.RawMessage {
	if t.said == "" {
		return result
	}
	switch method {
	case wire.MethodResourcesRead:
		return label.EachURI(result, "contents", t.uri)
	case wire.MethodDirectoryRead:
		return label.EachURI(result, "resources", t.uri)
	case wire.MethodSkillsGet:
		if entry := wire.Get(result, "skill"); entry != nil {
			return wire.Apply(result, wire.Put(skill.URIs(entry, t.uri), "skill"))
		}
	}
	return result
}

// run hands the call to the card, or to the server where it is no card's.
func (d *Deck) run(ctx context.Context, t target, call drawbridge.Call) (result drawbridge.Result, err error) {
	if t.card == nil {
		return d.send(ctx, t, call)
	}
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("a card panicked", "card", t.spec.Name, "panic", mishap.What(p), "at", mishap.Where())
			result, err = drawbridge.Result{}, drawbridge.AsFault(fmt.Errorf("card %s: panic", t.spec.Name))
		}
	}()
	return t.card.Run(ctx, call)
}

// find finds what a call is about.
func (d *Deck) find(ctx context.Context, call drawbridge.Call, p params.Params) (target, error) {
	switch {
	case call.Method == wire.MethodToolsCall:
		it, err := d.named(ctx, call.Caller, tools, p.Name)
		if err != nil {
			return target{}, err
		}
		t := it.target()
		if it.spec.Server == "" {
			t.card = it.card
		}
		return t.rewritten(p.Name, "name"), nil
	case call.Method == wire.MethodPromptsGet:
		it, err := d.named(ctx, call.Caller, prompts, p.Name)
		if err != nil {
			return target{}, err
		}
		return it.target().rewritten(p.Name, "name"), nil
	case call.Method == wire.MethodResourcesRead:
		t, err := d.findResource(ctx, call.Caller, p.Name)
		return t.rewritten(p.Name, "uri"), err
	case call.Method == wire.MethodComplete && p.Kind == params.Prompt:
		it, err := d.named(ctx, call.Caller, prompts, p.Name)
		if err != nil {
			return target{}, err
		}
		return it.target().rewritten(p.Name, "ref", "name"), nil
	case call.Method == wire.MethodComplete && p.Kind == params.Resource:
		t, err := d.findReference(ctx, call.Caller, p.Name)
		return t.rewritten(p.Name, "ref", "uri"), err
	}
	return target{}, invalid(call.Method, fmt.Errorf("no such reference %q", clip(p.Kind)))
}

// named finds a card or a prompt. Before it says that there is none it waits for servers that are about to appear.
func (d *Deck) named(ctx context.Context, caller drawbridge.Caller, k kind, name string) (*item, error) {
	look := func() *item { return d.view.Load().byMethod(k.list).find(caller, name) }
	it := look()
	if it == nil && d.beforeUnknown != nil {
		d.await(ctx, caller, name, func() bool { return look() != nil })
		it = look()
	}
	if it == nil {
		trail.Veil(ctx, d.view.Load().why(caller, k, name))
		return nil, unknown(k.word, name)
	}
	return it, nil
}

// await waits for the servers that could bring the name, and no longer than until it is there.
func (d *Deck) await(ctx context.Context, caller drawbridge.Caller, name string, there func() bool) {
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

func (it *item) target() target {
	return target{spec: it.spec, kind: it.kind, own: it.spec.Tool, names: it.offer.Names, held: it.offer.Held, next: it.offer.Next}
}

// rewritten adds the edit that makes the params say what the server knows, where the caller said something else.
func (t target) rewritten(said string, path ...string) target {
	if said != t.own {
		t.said = said
		t.edits = append(t.edits, wire.Put(wire.Quote(t.own), path...))
	}
	return t
}

// allow asks the guards, and has the call recorded before it may go on.
func (d *Deck) allow(ctx context.Context, call drawbridge.Call, kind string, spec drawbridge.Spec) error {
	verdict, err := d.judge(ctx, call, target{kind: kind, spec: spec})
	if err != nil {
		return err
	}
	return trail.Pass(ctx, call, nil, spec, verdict)
}

// judge asks the guards, and a person where they want that and nothing else is in the way, and has the call counted: all must
// allow, and the verdict is the last one's that names a rule, or the first that wanted a person asked. The caller holds the
// scopes already, or the card was not found.
func (d *Deck) judge(ctx context.Context, call drawbridge.Call, t target) (drawbridge.Verdict, error) {
	q := Question{Caller: call.Caller, Kind: t.kind, Spec: t.spec, Method: call.Method, Params: call.Params}
	verdict, asked, err := d.gate.Pass(ctx, q)
	if err == nil {
		if against, bar := t.bar(call.Method); bar != nil {
			verdict, err = against, bar
		}
	}
	if err == nil && len(asked) > 0 {
		if err = d.approve(ctx, call, t, asked); err == nil { // which took its time: the rules may be others now
			if now, _, no := d.gate.Pass(ctx, q); no != nil {
				verdict, err = now, no
			}
		}
	}
	if err == nil {
		q.Params = t.params(q.Params) // how calls end is counted by what was sent
		if now, no := d.gate.Count(ctx, q); no != nil {
			verdict, err = now, no
		}
	}
	if err != nil {
		trail.Bar(ctx, t.spec, verdict)
	}
	return verdict, err
}

func wordOf(method string) string { return gate.WordOf(method) }

func unknown(word, name string) error { return gate.Unknown(word, name) }

func noMethod(method string) error { return gate.NoMethod(method) }

func invalid(method string, cause error) error { return params.Invalid(method, cause) }

// clip shortens what a caller wrote to what an error may repeat.
func clip(text string) string { return gate.Clip(text) }
