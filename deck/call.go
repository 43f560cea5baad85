package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/spotlight"
)

// Call runs a tools/call: it resolves the name, asks the guards, and sends the call. The error is a
// *[drawbridge.Fault]: NotFound for a tool that does not exist or is hidden from the caller, PolicyBlocked for a
// refusal by a guard, InvalidInput for params without a name, or else the error of the card or server.
func (d *Deck) Call(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	call.Method = mcp.MethodToolsCall
	return d.Do(ctx, call)
}

// Do runs a call by its method: tools/call, prompts/get, resources/read, completion/complete, a method of tasks or
// skills, or a method of an extension that the caller and a server declared. Every call takes the same stages and
// returns the errors of [Deck.Call].
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

// runCall runs the stages of the call's method in order. The method tasks/list has no list of stages here, because it
// asks several servers.
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
			(*Deck).checkGuards, // scopes first
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

// runStages runs the stages in order, until one fails or answers the call.
func (d *Deck) runStages(ctx context.Context, s *callState, stages ...callStage) error {
	for _, stage := range stages {
		if err := stage(d, ctx, s); err != nil || s.answered {
			return err
		}
	}
	return nil
}

// A callState is the state of one call. The stages pass it along; it belongs to one goroutine.
type callState struct {
	// call is the call as the caller made it, or as call_tool named it. sent is the call as the server or card gets it.
	call, sent drawbridge.Call
	params     callParams
	target     callTarget
	// others are further targets that the params name; all of them must be allowed too.
	others []callTarget
	// log is the call's audit entry; nil without an audit.
	log *audit.LoggedCall
	// verdict is the verdict that decided so far; asked has the verdicts that want a person to approve the call.
	verdict drawbridge.Verdict
	asked   []drawbridge.Verdict
	// argumentEdits are the edits that rename arguments. Counting guards see the params with these alone.
	argumentEdits []rawjson.Edit
	// binding is the request to which a sealed request state belongs.
	binding stateBinding
	// tasks translates task ids; nil for a card, and for a server that left.
	tasks *taskTranslator
	// taskRequested reports that the server is asked to make a task of the call.
	taskRequested bool
	filter        spotlight.ResultFilter
	result        drawbridge.Result
	// intercepted is the call for the interceptors. entered are those that were entered and not yet left.
	intercepted InterceptedCall
	entered     []Interceptor
	// answered reports that the call ends here: the result is complete.
	answered bool
	// mapError replaces the final error; nil keeps it.
	mapError func(error) error
}

// A callTarget is what a call resolved to.
type callTarget struct {
	// spec and kind are what the guards decide on.
	spec drawbridge.Spec
	kind string
	// card is set for a shipped card, which runs in this process. Everything else goes to spec.Server.
	card drawbridge.Card
	// findTools reports a call of find_tools: the deck answers it, and no rule can forbid it.
	findTools bool
	// ownName is the server's name or URI, calledAs the caller's; calledAs is empty where both are the same.
	ownName, calledAs string
	// edits make the params name the target as the server does.
	edits []rawjson.Edit
	// ownArguments maps the listed names of arguments to the server's, where they differ.
	ownArguments map[string]string
	// heldReason and nextStep are set for a quarantined target; paramsErr for params that we did not give out.
	heldReason, nextStep string
	paramsErr            error
}

func (it *item) asTarget() callTarget {
	return callTarget{spec: it.spec, kind: it.kind, ownName: it.spec.Tool, ownArguments: it.offer.ownArguments,
		heldReason: it.offer.heldReason, nextStep: it.offer.nextStep}
}

// withOwnName returns the target with the edit of the params that replaces the caller's name by the server's.
func (t callTarget) withOwnName(said string, path ...string) callTarget {
	if said != t.ownName {
		t.calledAs = said
		t.edits = append(t.edits, rawjson.Put(rawjson.Quote(t.ownName), path...))
	}
	return t
}
