package deck

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/declare"
	"github.com/drawbridge-mcp/drawbridge/deck/gate"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
	"github.com/drawbridge-mcp/drawbridge/deck/seal"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A tasking is one principal's dealings with one server, as far as tasks go: it turns the server's ids into tickets on
// the way out and back on the way in, wherever the protocol has one.
type tasking struct {
	d         *Deck
	principal string
	server    drawbridge.ServerID
	apart     bool
	form      seal.Kind
	// hop is the generation that the server will be spoken to in for this caller; zero where nobody knows yet.
	hop drawbridge.Era
	// offered is what the server declares of legacy tasks, where the hop is legacy.
	offered json.RawMessage
}

func (d *Deck) taskingOf(m *member, caller drawbridge.Caller) tasking {
	k := tasking{d: d, principal: caller.Principal, server: m.ID, apart: m.Apart, form: formOf(caller)}
	if m.listing == nil {
		return k
	}
	if k.hop = m.listing.Era; k.hop == drawbridge.Legacy|drawbridge.Modern {
		k.hop = drawbridge.Modern
		if caller.Era == drawbridge.Legacy {
			k.hop = drawbridge.Legacy
		}
	}
	if k.hop == drawbridge.Legacy {
		k.offered = m.tasksFor(drawbridge.Caller{Era: drawbridge.Legacy})
	}
	return k
}

// send carries a call of a listed thing to its server, where it may become a task, or be about one.
func (d *Deck) send(ctx context.Context, t target, call drawbridge.Call) (drawbridge.Result, error) {
	m := d.view.Load().member(t.spec.Server)
	if m == nil { // it has left since the card was found, and whom the call would meet is for the upstream to say
		return d.up.Do(ctx, t.spec.Server, call)
	}
	k := d.taskingOf(m, call.Caller)
	call.Params = k.inward(call.Params)
	call.Caller.Capabilities = declare.WithoutTasks(call.Caller)
	asked := call.Method == wire.MethodToolsCall && bytes.Contains(call.Params, []byte("task")) &&
		wire.Get(call.Params, "task") != nil
	if asked && !k.mayAsk(call.Caller) {
		call.Params, asked = wire.Apply(call.Params, wire.Drop("task")), false
	}
	if k.offered != nil {
		call.Peer = k.peer(call.Peer)
	}
	result, err := d.up.Do(ctx, k.server, call)
	if err != nil || call.Method != wire.MethodToolsCall {
		return result, err
	}
	return k.created(result, asked)
}

// mayAsk says whether the member "task" of a caller's call goes to the server. A caller of the modern form that has it
// anyway means nothing by it, and a server of the legacy one would take it at its word; a caller of the legacy form is
// answered plainly by a server that has no tasks of that form.
func (k tasking) mayAsk(caller drawbridge.Caller) bool {
	if caller.Era == drawbridge.Modern {
		return k.hop == drawbridge.Modern
	}
	return k.hop != drawbridge.Modern
}

// created gives out the task that a call became, where it did. asked says that the caller asked for one.
func (k tasking) created(result drawbridge.Result, asked bool) (drawbridge.Result, error) {
	if !wire.MayHave(result.Raw, `"taskId"`) {
		return result, nil
	}
	switch modern := wire.GetText(result.Raw, "resultType") == "task"; {
	case modern && k.form != seal.ModernTask:
		return drawbridge.Result{}, gate.AsTask(k.server)
	case modern:
		result.Raw = k.renamed(result.Raw, "taskId")
	case asked:
		result.Raw = k.renamed(result.Raw, "task", "taskId")
	}
	result.Raw = k.outward(result.Raw)
	return result, nil
}

// handOut gives the ticket of a task, and remembers that the principal has it. It is for what a server says in answer to
// the principal's own request.
func (k tasking) handOut(own string) string {
	t := seal.Ticket{Kind: k.form, Server: k.server, Own: own}
	if text, ok := k.d.held.Ticket(k.principal, t); ok {
		return text
	}
	text := k.d.sealer.Ticket(k.principal, t)
	k.d.held.Add(k.principal, t, text)
	return text
}

// held gives the ticket of a task that the server speaks of by itself: to anybody who meets it, so that the principal must
// be known to have the task where others do.
func (k tasking) held(own string) (text string, ok bool) {
	if k.apart {
		return k.handOut(own), true
	}
	return k.d.held.Ticket(k.principal, seal.Ticket{Kind: k.form, Server: k.server, Own: own})
}

// renamed puts the ticket in the place of the id at path, where there is one.
func (k tasking) renamed(object json.RawMessage, path ...string) json.RawMessage {
	return label.Relabelled(object, k.given, path...)
}

func (k tasking) given(own string) (string, bool) { return k.handOut(own), true }

// outward has a result say which task it belongs to as the caller knows it. A caller whose form of tasks is not the
// server's knows none.
func (k tasking) outward(result json.RawMessage) json.RawMessage {
	switch {
	case !wire.MayHave(result, label.AboutTask):
		return result
	case k.mixed():
		return wire.Apply(result, wire.Drop("_meta", wire.MetaRelatedTask))
	}
	return label.Belonging(result, k.given)
}

// toldOf does the same for what the server says by itself. It says false where that is about a task the principal is not
// known to have.
func (k tasking) toldOf(params json.RawMessage) (json.RawMessage, bool) {
	if !wire.MayHave(params, label.AboutTask) {
		return params, true
	}
	if k.mixed() {
		return wire.Apply(params, wire.Drop("_meta", wire.MetaRelatedTask)), true
	}
	if own, ok := wire.Text(wire.Get(params, "_meta", wire.MetaRelatedTask, "taskId")); ok {
		if _, ok := k.held(own); !ok {
			return nil, false
		}
	}
	return label.Belonging(params, k.held), true
}

// mixed says whether the server is spoken to in the other generation than the caller's.
func (k tasking) mixed() bool {
	return k.hop != 0 && (k.hop == drawbridge.Modern) != (k.form == seal.ModernTask)
}

// inward turns the ticket in _meta of what a caller sends into the server's id. One that is nothing to the server goes no
// further: it must not hear a caller speak of a task that is not theirs.
func (k tasking) inward(params json.RawMessage) json.RawMessage {
	if !wire.MayHave(params, label.AboutTask) || wire.Get(params, "_meta", wire.MetaRelatedTask) == nil {
		return params
	}
	said := wire.GetText(params, "_meta", wire.MetaRelatedTask, "taskId")
	if t, ok := k.d.sealer.OpenTicket(k.principal, said, k.form); ok && t.Server == k.server {
		return wire.Apply(params, wire.Put(wire.Quote(t.Own), "_meta", wire.MetaRelatedTask, "taskId"))
	}
	return wire.Apply(params, wire.Drop("_meta", wire.MetaRelatedTask))
}

// peer is the caller's half of a conversation in which the server may speak of tasks.
func (k tasking) peer(peer drawbridge.Peer) drawbridge.Peer {
	if peer == nil {
		return nil
	}
	return taskPeer{peer, k}
}

type taskPeer struct {
	drawbridge.Peer
	k tasking
}

// Notify passes on what is not about somebody else's task.
func (p taskPeer) Notify(ctx context.Context, method string, params json.RawMessage) error {
	params, ok := p.k.toldOf(params)
	if !ok {
		return nil
	}
	return p.Peer.Notify(ctx, method, params)
}

// Ask passes on a question, and the answer. A question about somebody else's task is refused.
func (p taskPeer) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if strings.HasPrefix(method, "tasks/") { // about a task that the caller runs for the server: their ids are the caller's
		return p.Peer.Ask(ctx, method, params)
	}
	params, ok := p.k.toldOf(params)
	if !ok {
		return nil, unknown("task", "")
	}
	answer, err := p.Peer.Ask(ctx, method, params)
	return p.k.inward(answer), err
}
