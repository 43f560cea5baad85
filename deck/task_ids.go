package deck

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A taskTranslator is one principal's dealings with one server, as far as tasks go: it turns the server's ids into
// tickets on the way out and back on the way in, wherever the protocol has one.
type taskTranslator struct {
	deck         *Deck
	principal    string
	server       drawbridge.ServerID
	perPrincipal bool
	form         idKind
	// serverEra is the generation that the server will be spoken to in for this caller; zero where nobody knows yet.
	serverEra drawbridge.ProtocolEra
	// offered is what the server declares of legacy tasks, where the hop is legacy.
	offered json.RawMessage
}

func (d *Deck) taskTranslatorFor(m *serverState, caller drawbridge.Caller) taskTranslator {
	k := taskTranslator{deck: d, principal: caller.Principal, server: m.ID, perPrincipal: m.PerPrincipal,
		form: taskFormOf(caller)}
	if m.listing == nil {
		return k
	}
	if k.serverEra = m.listing.Era; k.serverEra == drawbridge.Legacy|drawbridge.Modern {
		k.serverEra = drawbridge.Modern
		if caller.Era == drawbridge.Legacy {
			k.serverEra = drawbridge.Legacy
		}
	}
	if k.serverEra == drawbridge.Legacy {
		k.offered = m.taskCapabilities(drawbridge.Caller{Era: drawbridge.Legacy})
	}
	return k
}

// maySendTaskParam says whether the member "task" of a caller's call goes to the server. A caller of the modern form
// that has it anyway means nothing by it, and a server of the legacy one would take it at its word; a caller of the
// legacy form is answered plainly by a server that has no tasks of that form.
func (k taskTranslator) maySendTaskParam(caller drawbridge.Caller) bool {
	if caller.Era == drawbridge.Modern {
		return k.serverEra == drawbridge.Modern
	}
	return k.serverEra != drawbridge.Modern
}

// translateCreatedTask gives out the task that a call became, where it did. asked says that the caller asked for one.
func (k taskTranslator) translateCreatedTask(result drawbridge.Result, asked bool) (drawbridge.Result, error) {
	if !rawjson.MayContain(result.Raw, `"taskId"`) {
		return result, nil
	}
	switch modern := rawjson.GetString(result.Raw, "resultType") == "task"; {
	case modern && k.form != modernTaskID:
		return drawbridge.Result{}, unexpectedTaskFault(k.server)
	case modern:
		result.Raw = k.rewriteID(result.Raw, "taskId")
	case asked:
		result.Raw = k.rewriteID(result.Raw, "task", "taskId")
	}
	result.Raw = k.rewriteResponse(result.Raw)
	return result, nil
}

// issueID gives the ticket of a task, and remembers that the principal has it. It is for what a server says in answer
// to the principal's own request.
func (k taskTranslator) issueID(own string) string {
	t := sealedID{Kind: k.form, Server: k.server, Own: own}
	if text, ok := k.deck.taskHolders.sealedIDOf(k.principal, t); ok {
		return text
	}
	text := k.deck.sealer.sealID(k.principal, t)
	k.deck.taskHolders.Add(k.principal, t, text)
	return text
}

// knownID gives the ticket of a task that the server speaks of by itself: to anybody who meets it, so that the
// principal must be known to have the task where others do.
func (k taskTranslator) knownID(own string) (text string, ok bool) {
	if k.perPrincipal {
		return k.issueID(own), true
	}
	return k.deck.taskHolders.sealedIDOf(k.principal, sealedID{Kind: k.form, Server: k.server, Own: own})
}

// rewriteID puts the ticket in the place of the id at path, where there is one.
func (k taskTranslator) rewriteID(object json.RawMessage, path ...string) json.RawMessage {
	return naming.ReplaceID(object, k.issueAnyID, path...)
}

func (k taskTranslator) issueAnyID(own string) (string, bool) { return k.issueID(own), true }

// rewriteResponse has a result say which task it belongs to as the caller knows it. A caller whose form of tasks is
// not the server's knows none.
func (k taskTranslator) rewriteResponse(result json.RawMessage) json.RawMessage {
	switch {
	case !rawjson.MayContain(result, naming.RelatedTaskMarker):
		return result
	case k.isMixedEra():
		return rawjson.Apply(result, rawjson.Drop("_meta", mcp.MetaRelatedTask))
	}
	return naming.ReplaceRelatedTaskIDs(result, k.issueAnyID)
}

// rewriteNotification does the same for what the server says by itself. It says false where that is about a task the
// principal is not known to have.
func (k taskTranslator) rewriteNotification(params json.RawMessage) (json.RawMessage, bool) {
	if !rawjson.MayContain(params, naming.RelatedTaskMarker) {
		return params, true
	}
	if k.isMixedEra() {
		return rawjson.Apply(params, rawjson.Drop("_meta", mcp.MetaRelatedTask)), true
	}
	if own, ok := rawjson.DecodeString(rawjson.Get(params, "_meta", mcp.MetaRelatedTask, "taskId")); ok {
		if _, ok := k.knownID(own); !ok {
			return nil, false
		}
	}
	return naming.ReplaceRelatedTaskIDs(params, k.knownID), true
}

// isMixedEra says whether the server is spoken to in the other generation than the caller's.
func (k taskTranslator) isMixedEra() bool {
	return k.serverEra != 0 && (k.serverEra == drawbridge.Modern) != (k.form == modernTaskID)
}

// requestEdits returns the edits that replace the sealed task id in _meta of a request by the server's id. An id that
// does not belong to the server is removed: the server must not learn of a task that is not the caller's.
func (k taskTranslator) requestEdits(params json.RawMessage) []rawjson.Edit {
	if !rawjson.MayContain(params, naming.RelatedTaskMarker) || rawjson.Get(params, "_meta",
		mcp.MetaRelatedTask) == nil {
		return nil
	}
	said := rawjson.GetString(params, "_meta", mcp.MetaRelatedTask, "taskId")
	if t, ok := k.deck.sealer.openID(k.principal, said, k.form); ok && t.Server == k.server {
		return []rawjson.Edit{rawjson.Put(rawjson.Quote(t.Own), "_meta", mcp.MetaRelatedTask, "taskId")}
	}
	return []rawjson.Edit{rawjson.Drop("_meta", mcp.MetaRelatedTask)}
}

// wrapPeer is the caller's half of a conversation in which the server may speak of tasks.
func (k taskTranslator) wrapPeer(peer drawbridge.Peer) drawbridge.Peer {
	if peer == nil {
		return nil
	}
	return taskPeer{peer, k}
}

type taskPeer struct {
	drawbridge.Peer
	translator taskTranslator
}

// Notify passes on what is not about somebody else's task.
func (p taskPeer) Notify(ctx context.Context, method string, params json.RawMessage) error {
	params, ok := p.translator.rewriteNotification(params)
	if !ok {
		return nil
	}
	return p.Peer.Notify(ctx, method, params)
}

// Request passes on a question, and the answer. A question about somebody else's task is refused.
func (p taskPeer) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	// about a task that the caller runs for the server: their ids are the caller's
	if strings.HasPrefix(method, "tasks/") {
		return p.Peer.Request(ctx, method, params)
	}
	params, ok := p.translator.rewriteNotification(params)
	if !ok {
		return nil, unknownNameFault("task", "")
	}
	answer, err := p.Peer.Request(ctx, method, params)
	return rawjson.Apply(answer, p.translator.requestEdits(answer)...), err
}
