package deck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/fence"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
	"github.com/drawbridge-mcp/drawbridge/deck/mishap"
	"github.com/drawbridge-mcp/drawbridge/deck/seal"
	"github.com/drawbridge-mcp/drawbridge/deck/skill"
	"github.com/drawbridge-mcp/drawbridge/deck/trail"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A target is what a call turned out to mean.
type target struct {
	// spec is what the guards are asked about.
	spec drawbridge.Spec
	// card is set for a shipped card, which runs here. Everything else goes to spec.Server.
	card drawbridge.Card
	// own is the name or URI as the server knows it, edits what makes the params say so; said is what the caller wrote
	// instead, empty where they wrote the same.
	own, said string
	edits     []wire.Edit
	// names are what of the arguments the server knows by other names. held and next say why it may not be called.
	names      map[string]string
	held, next string
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
	p, err := readParams(call.Method, call.Params)
	if err != nil {
		return drawbridge.Result{}, err
	}
	t, err := d.find(ctx, call, p)
	if err != nil {
		return drawbridge.Result{}, err
	}
	return d.carry(ctx, call, t, p)
}

// carry takes a call the rest of its way, once it is known what it is about.
func (d *Deck) carry(ctx context.Context, call drawbridge.Call, t target, p params) (drawbridge.Result, error) {
	if err := d.allow(ctx, call, t.spec); err != nil {
		return drawbridge.Result{}, err
	}
	if err := t.heldBack(call.Method); err != nil {
		return drawbridge.Result{}, err
	}
	r := seal.Request{
		Principal: call.Caller.Principal, Server: t.spec.Server, Method: call.Method, Own: t.own, Arguments: p.arguments,
	}
	if p.state != nil {
		state, err := d.sealer.Open(p.state, r)
		if err != nil {
			return drawbridge.Result{}, invalid(call.Method, fmt.Errorf("requestState: %w", err))
		}
		t.edits = append(t.edits, wire.Put(state, "requestState"))
	}
	call.Params = wire.Apply(t.params(call.Params), t.edits...)
	result, err := d.run(ctx, t, call)
	if err != nil {
		return drawbridge.Result{}, err
	}
	result.Raw = d.linked(call.Caller, call.Method, t.spec.Server, t.public(call.Method, result.Raw))
	result.Raw = d.fenced(call, t.spec.Server, t.own, result.Raw)
	return d.sealResult(result, r), nil
}

// fenced marks a server's result as foreign text, for whom that is wanted. A server that has just left is in doubt.
func (d *Deck) fenced(call drawbridge.Call, server drawbridge.ServerID, tool string, result json.RawMessage) json.RawMessage {
	if m := d.view.Load().member(server); server == "" || m != nil && !fence.Wanted(call.Caller, m.Fence, d.fence(call.Caller)) {
		return result
	}
	return fence.New(server, tool).Result(call.Method, result)
}

// public gives a result with the URIs that the caller asked by: who asks for one wants to find it in the answer.
func (t target) public(method string, result json.RawMessage) json.RawMessage {
	if t.said == "" {
		return result
	}
	uri := func(own string) string {
		if own == t.own {
			return t.said
		}
		return label.Alike(t.spec.Server, t.said, own)
	}
	switch method {
	case wire.MethodResourcesRead:
		return label.EachURI(result, "contents", uri)
	case wire.MethodDirectoryRead:
		return label.EachURI(result, "resources", uri)
	case wire.MethodSkillsGet:
		if entry := wire.Get(result, "skill"); entry != nil {
			return wire.Apply(result, wire.Put(skill.URIs(entry, uri), "skill"))
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

// sealResult seals the request state of a result that asks for more. The search for the bare word is much cheaper than
// reading a large result, and misses none that a caller's reader would find but those that spell the name with escapes:
// such a state stays open to the caller's eyes and is refused when it comes back.
func (d *Deck) sealResult(result drawbridge.Result, r seal.Request) drawbridge.Result {
	if !bytes.Contains(result.Raw, []byte(`"requestState"`)) {
		return result
	}
	state := wire.Get(result.Raw, "requestState")
	if state == nil || string(state) == "null" {
		return result
	}
	result.Raw = wire.Apply(result.Raw, wire.Put(d.sealer.Seal(state, r), "requestState"))
	return result
}

// params are the parts of a call's params that the deck reads.
type params struct {
	// name is the name or URI that the call is about.
	name string
	// kind is the type of a completion's reference, "ref/prompt" or "ref/resource".
	kind string
	// arguments and state are nil where they are absent.
	arguments, state json.RawMessage
}

// readParams reads params in one pass.
func readParams(method string, raw json.RawMessage) (params, error) {
	subject := "name"
	switch method {
	case wire.MethodResourcesRead, wire.MethodSkillsGet, wire.MethodDirectoryRead:
		subject = "uri"
	case wire.MethodComplete:
		subject = "ref"
	}
	parts, err := pick(method, raw, subject, "arguments", "requestState")
	if err != nil {
		return params{}, err
	}
	p := params{arguments: parts[1], state: parts[2]}
	about := parts[0]
	if string(p.state) == "null" {
		p.state = nil
	}
	if method == wire.MethodComplete {
		ref, err := pick(method, about, "type", "name", "uri")
		if err != nil {
			return params{}, err
		}
		p.kind, _ = wire.Text(ref[0])
		if subject, about = "ref.name", ref[1]; p.kind == refResource {
			subject, about = "ref.uri", ref[2]
		}
	}
	var ok bool
	if p.name, ok = wire.Text(about); !ok {
		return params{}, invalid(method, fmt.Errorf("params have no %s", subject))
	}
	return p, nil
}

// pick gives the members of an object by their names. One that is there twice is refused: whoever reads the object next
// might take the other. So is a name that some readers take for one of these: a server that does would do what was not decided on.
func pick(method string, object json.RawMessage, names ...string) ([]json.RawMessage, error) {
	parts := make([]json.RawMessage, len(names))
	known := append(names[:len(names):len(names)], "_meta", "inputResponses")
	for m := range wire.Members(object) {
		i := slices.IndexFunc(names, m.Is)
		switch {
		case i < 0:
			if j := slices.IndexFunc(known, m.Resembles); j >= 0 {
				return nil, invalid(method, fmt.Errorf("params have a name that some readers take for %q", known[j]))
			}
		case parts[i] != nil:
			return nil, invalid(method, fmt.Errorf("params have two %s", names[i]))
		default:
			parts[i] = m.Value
		}
	}
	return parts, nil
}

// The references of a completion.
const (
	refPrompt   = "ref/prompt"
	refResource = "ref/resource"
)

// find finds what a call is about.
func (d *Deck) find(ctx context.Context, call drawbridge.Call, p params) (target, error) {
	switch {
	case call.Method == wire.MethodToolsCall:
		it, err := d.named(ctx, call.Caller, tools, p.name)
		if err != nil {
			return target{}, err
		}
		t := it.target()
		if it.spec.Server == "" {
			t.card = it.card
		}
		return t.rewritten(p.name, "name"), nil
	case call.Method == wire.MethodPromptsGet:
		it, err := d.named(ctx, call.Caller, prompts, p.name)
		if err != nil {
			return target{}, err
		}
		return it.target().rewritten(p.name, "name"), nil
	case call.Method == wire.MethodResourcesRead:
		t, err := d.findResource(ctx, call.Caller, p.name)
		return t.rewritten(p.name, "uri"), err
	case call.Method == wire.MethodComplete && p.kind == refPrompt:
		it, err := d.named(ctx, call.Caller, prompts, p.name)
		if err != nil {
			return target{}, err
		}
		return it.target().rewritten(p.name, "ref", "name"), nil
	case call.Method == wire.MethodComplete && p.kind == refResource:
		t, err := d.findReference(ctx, call.Caller, p.name)
		return t.rewritten(p.name, "ref", "uri"), err
	}
	return target{}, invalid(call.Method, fmt.Errorf("no such reference %q", clip(p.kind)))
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
	return target{spec: it.spec, own: it.spec.Tool, names: it.offer.Names, held: it.offer.Held, next: it.offer.Next}
}

// rewritten adds the edit that makes the params say what the server knows, where the caller said something else.
func (t target) rewritten(said string, path ...string) target {
	if said != t.own {
		t.said = said
		t.edits = append(t.edits, wire.Put(wire.Quote(t.own), path...))
	}
	return t
}

// allow asks the guards, all of which must allow, and has the call recorded before it may go on. The caller holds the scopes
// already, or the card was not found.
func (d *Deck) allow(ctx context.Context, call drawbridge.Call, spec drawbridge.Spec) error {
	var asked []drawbridge.Verdict
	last := drawbridge.Verdict{Effect: drawbridge.Allow}
	q := Question{Caller: call.Caller, Spec: spec, Method: call.Method, Params: call.Params}
	for _, g := range d.guards {
		verdict := d.ask(ctx, g, q)
		switch {
		case verdict.Effect == drawbridge.Allow:
			last = verdict
			continue
		case verdict.Hide:
			trail.Bar(ctx, spec, verdict)
			return unknown(wordOf(call.Method), string(spec.Name))
		case verdict.Effect == drawbridge.Ask:
			asked = append(asked, verdict) // a person is not troubled with what another guard refuses
			continue
		case verdict.Reason == "":
			verdict.Reason = "it is not allowed"
		}
		trail.Bar(ctx, spec, verdict)
		return barred(call.Method, spec, errors.New(verdict.Reason))
	}
	if len(asked) > 0 {
		last = asked[0]
		if err := d.approve(ctx, call, spec, asked); err != nil {
			trail.Bar(ctx, spec, last)
			return err
		}
	}
	return trail.Pass(ctx, call, spec, last)
}

// barred is the fault of a call that a guard refused, or a person.
func barred(method string, spec drawbridge.Spec, why error) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked,
		Step: fmt.Sprintf("%s %s", method, clip(string(spec.Name))), Err: why,
	}
}

// ask asks one guard. One that panics has given no verdict.
func (d *Deck) ask(ctx context.Context, g Guard, q Question) (verdict drawbridge.Verdict) {
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("a guard panicked, the call is refused", "card", q.Spec.Name, "panic", mishap.What(p), "at", mishap.Where())
			verdict = drawbridge.Verdict{}
		}
	}()
	return g.Decide(ctx, q)
}

// wordOf says for people what a method is about.
func wordOf(method string) string {
	word, _, _ := strings.Cut(method, "/")
	if word == "completion" {
		return "reference"
	}
	return strings.TrimSuffix(word, "s")
}

// unknown is the one fault for what does not exist and for what a caller may not know of.
func unknown(word, name string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound,
		Step: fmt.Sprintf("unknown %s %s", word, clip(name)),
	}
}

// noMethod is the fault for a method that nobody answers, in the words of JSON-RPC.
func noMethod(method string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound, Step: "unknown method " + clip(method),
		Raw: wire.ErrorObject(wire.CodeMethodNotFound, "Method not found: "+clip(method), nil),
	}
}

func invalid(method string, cause error) error {
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput, Step: method, Err: cause}
}

// clip shortens what a caller wrote to what an error may repeat.
func clip(text string) string { return cut(text, 200) }
