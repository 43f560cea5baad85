package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/spotlight"
)

// Call runs a tools/call: it finds the tool by its name, asks the guards, and sends the call. The error is a
// *[drawbridge.Fault]. Its code is NotFound for a tool that does not exist or is hidden from the caller. It is
// PolicyBlocked if a guard refuses the call, and InvalidInput if the params have no name. Otherwise the error is the
// error of the card or the server.
func (d *Deck) Call(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	call.Method = mcp.MethodToolsCall
	return d.Do(ctx, call)
}

// Do runs a call of any method: tools/call, prompts/get, resources/read, completion/complete, and the methods of tasks
// and skills. It also runs methods of an extension that the caller and a server both declared. The stages are the same
// for all methods except tasks, and the errors are those of [Deck.Call].
func (d *Deck) Do(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	ctx, entry := d.callLog.Begin(ctx, call)
	s := &callState{call: call, log: entry}
	err := d.runCall(ctx, s)
	if err = entry.End(s.result, err); err != nil {
		return drawbridge.Result{}, err
	}
	d.trail.addResult(s)
	return s.result, nil
}

// A callStage is one step of a call. An error ends the call.
type callStage func(d *Deck, ctx context.Context, s *callState) error

// runCall runs the stages for the call's method in order. tasks/list has no stages here, because it sends requests to
// several servers.
func (d *Deck) runCall(ctx context.Context, s *callState) (err error) {
	switch s.call.Method {
	case mcp.MethodTasksList:
		err = d.listTasks(ctx, s)
	case mcp.MethodTasksGet, mcp.MethodTasksUpdate, mcp.MethodTasksCancel, mcp.MethodTasksResult:
		err = d.runStages(ctx, s,
			(*Deck).resolveTask,
			(*Deck).checkGuards,
			(*Deck).approve,
			(*Deck).countCall,
			(*Deck).recordIntent,
			(*Deck).rewriteTaskParams,
			(*Deck).send,
			(*Deck).restoreTaskIDs,
			(*Deck).guardResult,
		)
	default:
		err = d.runStages(ctx, s,
			(*Deck).resolve,
			(*Deck).decideOthers,
			(*Deck).openParams,
			(*Deck).checkGuards, // resolve has checked the scopes
			(*Deck).enterInterceptors,
			(*Deck).approve,
			(*Deck).countCall,
			(*Deck).recordIntent,
			(*Deck).rewriteParams,
			// crossing: boundary
			(*Deck).send,
			(*Deck).vetSkillEntry,
			(*Deck).restoreNames,
			(*Deck).leaveInterceptors,
			(*Deck).guardResult,
			(*Deck).sealState,
		)
	}
	if s.mapError != nil && err != nil {
		err = s.mapError(err)
	}
	if err != nil {
		s.result = drawbridge.Result{}
		d.leaveAfterFailure(ctx, s, err)
	}
	return err
}

// runStages runs the stages in order until one of them returns an error or sets s.answered.
func (d *Deck) runStages(ctx context.Context, s *callState, stages ...callStage) error {
	for _, stage := range stages {
		if err := stage(d, ctx, s); err != nil || s.answered {
			return err
		}
	}
	return nil
}

// A callState is the state of one call. Each stage reads and changes it. It is used by one goroutine only.
type callState struct {
	// call is the call that the caller made, or the call that is inside call_tool. sent is the call that is sent to the
	// server or card.
	call, sent drawbridge.Call
	params     callParams
	target     callTarget
	// others are further targets that the params name. The guards must allow all of them too.
	others []callTarget
	// log is the call's audit entry; nil if there is no audit.
	log *audit.LoggedCall
	// verdict is the verdict that decided so far. asked are the verdicts that require a person's approval.
	verdict drawbridge.Verdict
	asked   []drawbridge.Verdict
	// argumentEdits are the edits that rename arguments. Counting guards receive the params with only these edits applied.
	argumentEdits []rawjson.Edit
	// binding is the request for which the request state is sealed. Only this request can open the state.
	binding stateBinding
	// tasks translates task IDs; nil for a card, and for a server that is not configured any more.
	tasks *taskTranslator
	// taskRequested reports whether the request asks the server to run the call as a task.
	taskRequested bool
	filter        spotlight.ResultFilter
	result        drawbridge.Result
	// intercepted is the call as the interceptors see it. entered are the interceptors whose After method must still be
	// called.
	intercepted InterceptedCall
	entered     []Interceptor
	// answered reports whether the result is complete, so that the remaining stages are skipped.
	answered bool
	// mapError replaces the final error of the call; nil does not replace it.
	mapError func(error) error
}

// A callTarget is the tool, prompt, resource, template or task that a call is about.
type callTarget struct {
	// spec and kind are the input of the guards.
	spec drawbridge.Spec
	kind string
	// card is set for a shipped card, which runs in this process. Without a card the call is sent to spec.Server.
	card drawbridge.Card
	// findTools reports whether this is a call of find_tools. The deck answers such a call itself, and no rule can forbid
	// it.
	findTools bool
	// ownName is the server's name or URI of the target. calledAs is the name that the caller used; it is empty if both
	// are the same.
	ownName, calledAs string
	// edits replace the caller's name of the target in the params with the server's name.
	edits []rawjson.Edit
	// ownArguments maps the listed names of arguments to the server's names, for names that differ.
	ownArguments map[string]string
	// heldReason and nextStep are set for a quarantined target. paramsErr is set for params with a state or a name that
	// the deck did not give to the caller.
	heldReason, nextStep string
	paramsErr            error
}

func (it *item) asTarget() callTarget {
	return callTarget{spec: it.spec, kind: it.kind, ownName: it.spec.Tool, ownArguments: it.offer.ownArguments,
		heldReason: it.offer.heldReason, nextStep: it.offer.nextStep}
}

// withOwnName returns the target with an edit that replaces the caller's name in the params at path with the server's
// name.
func (t callTarget) withOwnName(said string, path ...string) callTarget {
	if said != t.ownName {
		t.calledAs = said
		t.edits = append(t.edits, rawjson.Put(rawjson.Quote(t.ownName), path...))
	}
	return t
}
