package deck

import (
	"context"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// Call runs a tools/call: it finds the tool by its name, asks the guards, and sends the call. The error is a
// *[drawbridge.Fault]. Its code is NotFound for a tool that does not exist or is hidden from the caller. It is
// PolicyBlocked if a guard refuses the call, and InvalidInput if the params have no name. Otherwise the error is the
// error of the card or the server.
func (d *Deck) Call(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	call.Method = mcp.MethodToolsCall
	return d.Do(ctx, call)
}

// Do runs a call of one of these methods: tools/call, prompts/get, resources/read, completion/complete, the methods of
// tasks and skills, and resources/directory/read. It also runs methods of an extension that the caller and a server
// both declared. For all methods, the guards decide on the call and the audit records it. The errors are those of
// [Deck.Call].
func (d *Deck) Do(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	ctx, entry := d.callLog.Begin(ctx, call)
	s := &callState{call: call, log: entry}
	err := d.runCall(ctx, s)
	if err != nil && !entry.Sent() {
		d.noteLabel(ctx, s)
	}
	if failed := s.tellObservers(err); failed != nil {
		s.result, err = drawbridge.Result{}, failed
	}
	if err = entry.End(s.result, err); err != nil {
		return drawbridge.Result{}, err
	}
	d.trail.addResult(s)
	return s.result, nil
}

// A callStage is one step of a call, such as asking the guards. After an error, the later steps are not run.
type callStage func(d *Deck, ctx context.Context, s *callState) error

// runCall runs the stages for the call's method in order. For tasks/list it calls listTasks instead, because such a
// call is sent to several servers.
func (d *Deck) runCall(ctx context.Context, s *callState) (err error) {
	switch s.call.Method {
	case mcp.MethodTasksList:
		err = d.listTasks(ctx, s)
	case mcp.MethodTasksGet, mcp.MethodTasksUpdate, mcp.MethodTasksCancel, mcp.MethodTasksResult:
		err = d.runStages(ctx, s,
			(*Deck).resolveTask,
			(*Deck).checkGuards,
			(*Deck).approve,
			(*Deck).observeCall,
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
			(*Deck).observeCall,
			(*Deck).countCall,
			(*Deck).recordIntent,
			(*Deck).rewriteParams,
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
	// call is the call that the caller made. If the caller made the call through the tool call_tool, call is the inner
	// call. sent is the call that is sent to the server or card, with the server's own names.
	call, sent drawbridge.Call
	params     callParams
	target     callTarget
	// others are further targets that the params name besides target. The call is refused unless the guards allow all
	// of them.
	others []callTarget
	// log is the call's audit entry; nil without an audit.
	log *audit.LoggedCall
	// verdict is the guards' verdict that the audit records for the call. asked are the guards' verdicts that require a
	// person's approval.
	verdict drawbridge.Verdict
	asked   []drawbridge.Verdict
	// argumentEdits are the edits that replace the listed names of arguments with the server's names. Counting guards
	// receive the params with these edits applied, and with no other edits.
	argumentEdits []rawjson.Edit
	// binding identifies the request to which a request state is bound when it is sealed. The state can be opened only
	// by a retry of this request.
	binding stateBinding
	// tasks translates task IDs between the caller and the server; nil for a shipped card, and for a server that is not
	// configured any more.
	tasks *taskTranslator
	// taskRequested reports whether the request asks the server to run the call as a task.
	taskRequested bool
	filter        ResultFilter
	result        drawbridge.Result
	// observers are called with the result of the call, or its error.
	observers []func(*drawbridge.Result, error) error
	// intercepted is the data that interceptors receive. entered are the interceptors whose Before method was called
	// and whose After method was not called yet.
	intercepted InterceptedCall
	entered     []Interceptor
	// answered reports whether a stage has already set the final result; then the remaining stages are skipped.
	answered bool
	// mapError converts the error of the call to the error that the caller gets; if it is nil, the error is not
	// converted.
	mapError func(error) error
}

// A callTarget is the tool, prompt, resource, template or task that a call is about.
type callTarget struct {
	// spec and kind are passed to the guards; see [Question].
	spec drawbridge.Spec
	kind string
	// card is set for a shipped card, which runs in this process. Without a card the call is sent to spec.Server.
	card drawbridge.Card
	// searches reports whether this is a call of a search tool. The deck answers such a call itself, and no rule can forbid
	// it.
	searches bool
	// ownName is the server's own name or URI of the target. calledAs is the name or URI that the caller used; it is
	// empty if both are the same.
	ownName, calledAs string
	// edits replace the caller's name of the target in the params with the server's name.
	edits []rawjson.Edit
	// ownArguments maps the listed names of arguments to the server's names, for names that differ.
	ownArguments map[string]string
	// sampler selects results to learn the output type from; nil for a target that has none to learn. definition is the
	// tool's definition with the server's own name.
	sampler    *outputSampler
	definition json.RawMessage
	// ownTask is true for a task of Drawbridge's own cards.
	ownTask bool
	// heldReason and nextStep are set for a target that must not be called until a person decides on it. paramsErr is
	// set if the deck did not issue the request state in the params, or if an argument has an unlisted name. In both
	// cases the call is refused after the guards have decided.
	heldReason, nextStep string
	paramsErr            error
}

func (it *item) asTarget() callTarget {
	return callTarget{spec: it.spec, kind: it.kind, ownName: it.spec.Tool, ownArguments: it.offer.ownArguments,
		sampler: it.sampler, definition: it.offer.Raw, heldReason: it.offer.heldReason, nextStep: it.offer.nextStep}
}

// withOwnName returns the target for a call in which the caller used the name said. If said is not the server's own
// name, the target gets an edit that writes the server's name to path in the params.
func (t callTarget) withOwnName(said string, path ...string) callTarget {
	if said != t.ownName {
		t.calledAs = said
		t.edits = append(t.edits, rawjson.Put(rawjson.Quote(t.ownName), path...))
	}
	return t
}
