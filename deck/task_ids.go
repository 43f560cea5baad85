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

// A taskTranslator converts task IDs in the messages between one principal and one server. In messages of the server,
// it replaces the server's own IDs with sealed IDs. In messages of the principal, it replaces the sealed IDs with the
// server's own IDs.
type taskTranslator struct {
	deck         *Deck
	principal    string
	server       drawbridge.ServerID
	perPrincipal bool
	form         idKind
	// serverEra is the protocol generation that the upstream uses with the server for this caller; zero before the
	// server's first listing.
	serverEra drawbridge.ProtocolEra
	// offered is the server's task capabilities if serverEra is Legacy; otherwise nil.
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

// maySendTaskParam reports whether the member "task" of the caller's request may be sent to the server. In the legacy
// protocol this member requests a task; in the modern protocol it has no meaning. A modern caller's member is not sent
// to a legacy server, which would create a task. A legacy caller's member is not sent to a modern server.
func (k taskTranslator) maySendTaskParam(caller drawbridge.Caller) bool {
	if caller.Era == drawbridge.Modern {
		return k.serverEra == drawbridge.Modern
	}
	return k.serverEra != drawbridge.Modern
}

// translateCreatedTask replaces the task IDs in the result of tools/call with sealed IDs. If the server answered with a
// task, the result contains the ID of this task. asked reports whether the request asked for a task. It returns a fault
// if the server answered with a modern task although the caller's protocol is legacy.
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

// issueID returns the sealed ID of the task with the server's own ID own, and stores that the principal holds the task.
// It must be used only for tasks that belong to the principal: in results of the principal's requests, or if each
// principal has its own process of the server.
func (k taskTranslator) issueID(own string) string {
	t := sealedID{Kind: k.form, Server: k.server, Own: own}
	if text, ok := k.deck.taskHolders.sealedIDOf(k.principal, t); ok {
		return text
	}
	text := k.deck.sealer.sealID(k.principal, t)
	k.deck.taskHolders.Add(k.principal, t, text)
	return text
}

// knownID returns the sealed ID of a task for a message that may be about a task of another principal, such as a
// notification. If several principals share the server's process, ok is false unless the principal holds the task.
func (k taskTranslator) knownID(own string) (text string, ok bool) {
	if k.perPrincipal {
		return k.issueID(own), true
	}
	return k.deck.taskHolders.sealedIDOf(k.principal, sealedID{Kind: k.form, Server: k.server, Own: own})
}

// rewriteID returns the object with the server's own task ID at path replaced with its sealed ID. An object
// without a task ID is unchanged.
func (k taskTranslator) rewriteID(object json.RawMessage, path ...string) json.RawMessage {
	return naming.ReplaceID(object, k.issueAnyID, path...)
}

func (k taskTranslator) issueAnyID(own string) (string, bool) { return k.issueID(own), true }

// rewriteResponse returns a result with the related task IDs in "_meta" replaced with sealed IDs. If caller and server
// use different protocol generations, it removes them, because the caller could not use them.
func (k taskTranslator) rewriteResponse(result json.RawMessage) json.RawMessage {
	switch {
	case !rawjson.MayContain(result, naming.RelatedTaskMarker):
		return result
	case k.isMixedEra():
		return rawjson.Apply(result, rawjson.Drop("_meta", mcp.MetaRelatedTask))
	}
	return naming.ReplaceRelatedTaskIDs(result, k.issueAnyID)
}

// rewriteNotification does the same as rewriteResponse for the params of a notification or request from the server. It
// returns false if the message is about a task that the principal must not see; see knownID.
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

// isMixedEra reports whether the caller and the server are known to use different protocol generations.
func (k taskTranslator) isMixedEra() bool {
	return k.serverEra != 0 && (k.serverEra == drawbridge.Modern) != (k.form == modernTaskID)
}

// requestEdits returns the edits that replace the sealed ID of the related task in the "_meta" of a request with the
// server's own ID. If the ID was not sealed for this principal and server, it is removed. So a server never gets task
// IDs of other servers or principals.
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

// wrapPeer returns a peer that translates the task IDs in the messages that the server sends to the caller during a
// call. For a nil peer it returns nil.
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

// Notify forwards a notification to the caller. It drops a notification about a task that the principal must not see.
func (p taskPeer) Notify(ctx context.Context, method string, params json.RawMessage) error {
	params, ok := p.translator.rewriteNotification(params)
	if !ok {
		return nil
	}
	return p.Peer.Notify(ctx, method, params)
}

// Request forwards a request to the caller and returns the answer. It returns a fault for a request about a task that
// the principal must not see.
func (p taskPeer) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	// This request is about a task that the caller runs for the server. The caller chose the task ID, so it is not
	// translated.
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
