package deck

import (
	"context"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A TaskBackend handles the tasks of Drawbridge's own cards. A card whose definition has an execution.taskSupport may
// answer a call with a task, in the form of the caller's protocol, and continue the call. IDs in params and in results
// are the backend's own; the deck replaces them with sealed IDs.
type TaskBackend interface {
	// DoTask carries out tasks/get, tasks/result, tasks/update, tasks/cancel or tasks/list for the tasks of the caller's
	// principal. The error is a *drawbridge.Fault; its code is NotFound for an unknown task.
	DoTask(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error)
}

// ownTaskCapabilities are the task capabilities of Drawbridge's own cards in the two forms of tasks.
var ownTaskCapabilities = map[idKind]string{
	legacyTaskID: `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`,
	modernTaskID: `{}`,
}

// supportsTask reports whether the card with this definition may answer with a task.
func supportsTask(definition json.RawMessage) bool {
	return rawjson.MayContain(definition, `"taskSupport"`) && rawjson.Get(definition, "execution", "taskSupport") != nil
}

// ownTaskScopes returns the scopes of a card that may answer this caller with a task. It returns false if the caller
// can see no such card.
func (d *Deck) ownTaskScopes(caller drawbridge.Caller) ([]drawbridge.Scope, bool) {
	if d.ownTasks == nil {
		return nil, false
	}
	for _, name := range d.taskCards {
		if spec, ok := d.FindCard(caller, name); ok && spec.Server == "" {
			return spec.Scopes, true
		}
	}
	return nil, false
}

// offersOwnTask returns the task capabilities of Drawbridge's own cards in the form of the caller's protocol; nil if
// there are none.
func (d *Deck) offersOwnTask(caller drawbridge.Caller) json.RawMessage {
	if _, ok := d.ownTaskScopes(caller); !ok {
		return nil
	}
	return json.RawMessage(ownTaskCapabilities[taskFormOf(caller)])
}

// ownTaskTranslator returns the translator for IDs of Drawbridge's own tasks.
func (d *Deck) ownTaskTranslator(caller drawbridge.Caller) taskTranslator {
	return taskTranslator{deck: d, principal: caller.Principal, server: drawbridge.OwnServer, perPrincipal: true,
		form: taskFormOf(caller), serverEra: caller.Era}
}

// findOwnTask sets s.target to one of Drawbridge's own tasks.
func (d *Deck) findOwnTask(s *callState, id string, t sealedID) error {
	scopes, ok := d.ownTaskScopes(s.call.Caller)
	if !ok {
		return unknownNameFault(taskKind, id)
	}
	k := d.ownTaskTranslator(s.call.Caller)
	s.tasks = &k
	s.target = callTarget{kind: taskKind, ownName: t.Own, ownTask: true, spec: drawbridge.Spec{
		Name: drawbridge.CardName(id), Tool: t.Own, Scopes: scopes}}
	return nil
}

// listOwnTasks returns the list items of the caller's own tasks, each preceded by a comma.
func (d *Deck) listOwnTasks(ctx context.Context, s *callState) (items []byte, err error) {
	if _, ok := d.ownTaskScopes(s.call.Caller); !ok {
		return nil, nil
	}
	call := s.call
	call.Params = nil
	page, err := d.ownTasks.DoTask(ctx, call)
	if err != nil {
		return nil, err
	}
	k := d.ownTaskTranslator(s.call.Caller)
	for item := range rawjson.Elements(rawjson.Get(page.Raw, "tasks")) {
		if item, ok := k.rewriteListItem(item); ok {
			items = append(append(items, ','), item...)
		}
	}
	return items, nil
}

// startsOwnTask reports whether the called card may answer with a task.
func (d *Deck) startsOwnTask(s *callState) bool {
	return d.ownTasks != nil && s.target.card != nil && s.call.Method == mcp.MethodToolsCall &&
		s.call.Caller.OriginKind() != drawbridge.Sandbox && supportsTask(s.target.spec.Definition)
}
