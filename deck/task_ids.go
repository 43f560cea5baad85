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

// A taskTranslator converts task IDs between one principal and one server. It replaces the server's IDs with sealed IDs
// in results, and the sealed IDs with the server's IDs in requests.
type taskTranslator struct {
	deck         *Deck
	principal    string
	server       drawbridge.ServerID
	perPrincipal bool
	form         idKind
	// serverEra is the protocol generation that is used with the server for this caller; zero if it is not known yet.
	serverEra drawbridge.ProtocolEra
	// offered is the server's legacy task capabilities, if the connection is legacy.
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

// maySendTaskParam reports whether the member "task" of a request may be sent to the server. A modern caller may send
// it only to a modern server, because a legacy server would obey it although it means nothing. A legacy caller may not
// send it to a modern server, so that the server answers without a task.
func (k taskTranslator) maySendTaskParam(caller drawbridge.Caller) bool {
	if caller.Era == drawbridge.Modern {
		return k.serverEra == drawbridge.Modern
	}
	return k.serverEra != drawbridge.Modern
}

// translateCreatedTask seals the ID of the task that the call became, and the related task IDs of the result. asked
// reports whether the caller requested a task.
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

// issueID returns the sealed ID of a task, and stores that the principal holds the task. Use it only for results of the
// principal's own requests.
func (k taskTranslator) issueID(own string) string {
	t := sealedID{Kind: k.form, Server: k.server, Own: own}
	if text, ok := k.deck.taskHolders.sealedIDOf(k.principal, t); ok {
		return text
	}
	text := k.deck.sealer.sealID(k.principal, t)
	k.deck.taskHolders.Add(k.principal, t, text)
	return text
}

// knownID returns the sealed ID of a task in a message that the principal did not request. If principals share the
// server, ok is false unless the principal holds the task.
func (k taskTranslator) knownID(own string) (text string, ok bool) {
	if k.perPrincipal {
		return k.issueID(own), true
	}
	return k.deck.taskHolders.sealedIDOf(k.principal, sealedID{Kind: k.form, Server: k.server, Own: own})
}

// rewriteID replaces the task ID at path, if there is one, with its sealed ID.
func (k taskTranslator) rewriteID(object json.RawMessage, path ...string) json.RawMessage {
	return naming.ReplaceID(object, k.issueAnyID, path...)
}

func (k taskTranslator) issueAnyID(own string) (string, bool) { return k.issueID(own), true }

// rewriteResponse seals the related task IDs of a result. If caller and server use different protocol generations, it
// removes them.
func (k taskTranslator) rewriteResponse(result json.RawMessage) json.RawMessage {
	switch {
	case !rawjson.MayContain(result, naming.RelatedTaskMarker):
		return result
	case k.isMixedEra():
		return rawjson.Apply(result, rawjson.Drop("_meta", mcp.MetaRelatedTask))
	}
	return naming.ReplaceRelatedTaskIDs(result, k.issueAnyID)
}

// rewriteNotification seals the related task IDs of a message that the principal did not request, like rewriteResponse.
// It returns false if the principal does not hold the task.
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

// isMixedEra reports whether caller and server use different protocol generations.
func (k taskTranslator) isMixedEra() bool {
	return k.serverEra != 0 && (k.serverEra == drawbridge.Modern) != (k.form == modernTaskID)
}

// requestEdits returns the edits that replace the sealed task ID in the _meta of a request with the server's ID. An ID
// that does not belong to the server is removed. So the server does not receive task IDs of other servers or
// principals.
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

// wrapPeer returns a peer that translates the task IDs in the server's messages to the caller.
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

// Notify forwards a notification, unless it is about a task that the principal does not hold.
func (p taskPeer) Notify(ctx context.Context, method string, params json.RawMessage) error {
	params, ok := p.translator.rewriteNotification(params)
	if !ok {
		return nil
	}
	return p.Peer.Notify(ctx, method, params)
}

// Request forwards a request and returns its answer. A request about a task that the principal does not hold is
// refused.
func (p taskPeer) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	// The caller runs such a task for the server, so the task ID is the caller's own.
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
