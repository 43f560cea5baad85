package cards

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

const (
	// taskDelay is how long a call of a stateless client is answered directly; then it is answered with a task.
	taskDelay = 5 * time.Second
	// taskPollInterval is how often a client is asked to look at its task.
	taskPollInterval = time.Second
	// defaultTaskTTL and maxTaskTTL limit how long the result of an ended task is kept.
	defaultTaskTTL = time.Hour
	maxTaskTTL     = 24 * time.Hour
	// maxTasks and maxTaskBytes limit the tasks of one principal and the size of their results.
	maxTasks     = 64
	maxTaskBytes = 32 << 20
	// resumeWait is how long a request for an unknown task waits for the end of an interrupted run that is resumed.
	resumeWait = 2 * time.Second
)

// errTaskCancelled is the cause of the end of a task that its client cancelled.
var errTaskCancelled = errors.New("the client cancelled the task")

// ScriptTasks are calls of run_python that continue after the response. A client that knows tasks polls them. A task
// has the ID of its run: if the run was interrupted while it waited for a person, the first request for its task
// resumes it.
type ScriptTasks struct {
	// card runs the scripts; NewRunPythonCard sets it.
	card drawbridge.Card
	now  func() time.Time

	mu      sync.Mutex
	tasks   map[taskKey]*scriptTask
	closed  bool
	running sync.WaitGroup
}

var _ deck.TaskBackend = (*ScriptTasks)(nil)

// A taskKey identifies a task.
type taskKey struct{ principal, id string }

// A scriptTask is one task. The mutex of ScriptTasks guards the members that change.
type scriptTask struct {
	id               string
	created, updated time.Time
	ttl              time.Duration
	cancel           context.CancelCauseFunc
	done             chan struct{} // closed when the call has ended
	status, message  string
	result           drawbridge.Result
	err              error
}

// The states of a task.
const (
	taskWorking   = "working"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// NewScriptTasks returns an empty set of tasks.
func NewScriptTasks() *ScriptTasks {
	return &ScriptTasks{now: time.Now, tasks: map[taskKey]*scriptTask{}}
}

// Close ends all tasks and waits for them. A run that waits for a person can be resumed later.
func (t *ScriptTasks) Close() error {
	t.mu.Lock()
	t.closed = true
	for _, task := range t.tasks {
		task.cancel(context.Canceled)
	}
	t.mu.Unlock()
	t.running.Wait()
	return nil
}

// asksForTask reports whether a call may be answered with a task. A stateful client asks for a task in the params. A
// stateless client declares that it knows tasks, and then any call may become one.
func asksForTask(call drawbridge.Call) bool {
	if call.Caller.Era != drawbridge.Modern {
		return rawjson.Get(call.Params, "task") != nil
	}
	resume := rawjson.Get(call.Params, "_meta", mcp.MetaResume)
	return rawjson.Get(call.Caller.Capabilities, "extensions", mcp.ExtensionTasks) != nil &&
		(resume == nil || string(resume) != `""`) // without the ID of the run, the task would have another one
}

// answer starts a task for a call, and returns its answer: the task, or for a stateless client the result of a call
// that ended soon.
func (t *ScriptTasks) answer(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	id, resumed := rawjson.DecodeString(rawjson.Get(call.Params, "_meta", mcp.MetaResume))
	if !resumed {
		id = NewRunID()
		call.Params = rawjson.Apply(call.Params, rawjson.Put(rawjson.Quote(id), "_meta", mcp.MetaRun))
	}
	peer := &taskPeer{Peer: call.Peer, tasks: t}
	call.Peer = peer
	task, err := t.start(ctx, call, id, peer)
	if err != nil {
		return drawbridge.Result{}, err
	}
	if call.Caller.Era == drawbridge.Modern {
		wait := time.NewTimer(taskDelay)
		defer wait.Stop()
		select {
		case <-task.done:
			t.remove(call.Caller, task)
			return task.result, task.err
		case <-ctx.Done():
			task.cancel(context.Cause(ctx)) // the client does not know the task
			<-task.done
			t.remove(call.Caller, task)
			return task.result, cmp.Or(task.err, context.Cause(ctx))
		case <-wait.C:
		}
	}
	peer.detach()
	t.mu.Lock()
	defer t.mu.Unlock()
	if call.Caller.Era == drawbridge.Modern {
		return drawbridge.Result{Raw: rawjson.Apply(task.members(drawbridge.Modern),
			rawjson.Put(rawjson.Quote("task"), "resultType"))}, nil
	}
	return drawbridge.Result{Raw: rawjson.Apply(nil, rawjson.Put(task.members(drawbridge.Legacy), "task"))}, nil
}

// start starts a call as a task.
func (t *ScriptTasks) start(ctx context.Context, call drawbridge.Call, id string, peer *taskPeer) (*scriptTask, error) {
	task := &scriptTask{id: id, created: t.now(), ttl: defaultTaskTTL, done: make(chan struct{}), status: taskWorking}
	task.updated = task.created
	var asked float64
	if json.Unmarshal(rawjson.Get(call.Params, "task", "ttl"), &asked) == nil && asked > 0 {
		task.ttl = time.Duration(min(asked, float64(maxTaskTTL/time.Millisecond))) * time.Millisecond
	}
	call.Params = rawjson.Apply(call.Params, rawjson.Drop("task"))
	if rawjson.Get(call.Params, "_meta", "progressToken") == nil { // its progress is the message of the task
		call.Params = rawjson.Apply(call.Params, rawjson.Put(rawjson.Quote(id), "_meta", "progressToken"))
		peer.noProgress = true
	}
	call.Caller.Capabilities = rawjson.Apply(call.Caller.Capabilities, rawjson.Drop("extensions", mcp.ExtensionTasks))
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.makeRoom(call.Caller.Principal); err != nil {
		return nil, err
	}
	ctx, task.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	peer.task = task
	t.tasks[taskKey{call.Caller.Principal, id}] = task
	t.running.Go(func() {
		defer task.cancel(nil)
		result, err := t.card.Run(ctx, call)
		t.end(task, result, err, context.Cause(ctx))
	})
	return task, nil
}

// makeRoom removes tasks whose result is not kept any more. If the principal has too many, it removes those that ended
// first. It returns an error if no task can start.
func (t *ScriptTasks) makeRoom(principal string) error {
	if t.closed {
		return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.Transient, Step: "start the task",
			Err: errors.New("this process is ending")}
	}
	type ended struct {
		key  taskKey
		task *scriptTask
	}
	var mine []ended
	count, size := 0, 0
	for key, task := range t.tasks {
		over := task.status != taskWorking
		if over && t.now().Sub(task.updated) > task.ttl {
			delete(t.tasks, key)
			continue
		}
		if key.principal == principal {
			count++
			size += len(task.result.Raw)
			if over {
				mine = append(mine, ended{key, task})
			}
		}
	}
	slices.SortFunc(mine, func(a, b ended) int { return a.task.updated.Compare(b.task.updated) })
	for _, e := range mine {
		if count < maxTasks && size <= maxTaskBytes {
			break
		}
		count, size = count-1, size-len(e.task.result.Raw)
		delete(t.tasks, e.key)
	}
	if count >= maxTasks {
		return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.RateLimited, Step: "start the task",
			Err: errors.New("too many tasks are running"), Next: "wait for a task, or cancel one"}
	}
	return nil
}

// end stores the outcome of a task.
func (t *ScriptTasks) end(task *scriptTask, result drawbridge.Result, err, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	task.result, task.err, task.updated, task.message = result, err, t.now(), ""
	switch {
	case task.status == taskCancelled:
	case err != nil:
		task.status, task.message = taskFailed, drawbridge.AsFault(cmp.Or(faultOf(err), cause, err)).Error()
	default:
		task.status = taskCompleted
	}
	close(task.done)
}

// faultOf returns err if it is a fault, else nil.
func faultOf(err error) error {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok {
		return f
	}
	return nil
}

// remove removes a task that its client does not know.
func (t *ScriptTasks) remove(caller drawbridge.Caller, task *scriptTask) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tasks, taskKey{caller.Principal, task.id})
}

// DoTask implements [deck.TaskBackend].
func (t *ScriptTasks) DoTask(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	if call.Method == mcp.MethodTasksList {
		return t.list(call.Caller.Principal), nil
	}
	task, err := t.find(ctx, call)
	if err != nil {
		return drawbridge.Result{}, err
	}
	complete := drawbridge.Result{Raw: json.RawMessage(`{"resultType":"complete"}`)}
	switch call.Method {
	case mcp.MethodTasksCancel:
		t.cancelTask(task)
		if call.Caller.Era == drawbridge.Modern {
			return complete, nil
		}
	case mcp.MethodTasksUpdate: // such a task never asks its client
		return complete, nil
	case mcp.MethodTasksResult:
		return t.result(ctx, task)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	raw := task.members(call.Caller.Era)
	if call.Caller.Era == drawbridge.Modern {
		raw = rawjson.Apply(raw, append(task.outcome(), rawjson.Put(rawjson.Quote("complete"), "resultType"))...)
	}
	return drawbridge.Result{Raw: raw, Foreign: task.result.Foreign}, nil
}

// find returns the task that the params name. If this process does not know it, an interrupted run with this ID is
// resumed.
func (t *ScriptTasks) find(ctx context.Context, call drawbridge.Call) (*scriptTask, error) {
	id := rawjson.GetString(call.Params, "taskId")
	unknown := &drawbridge.Fault{Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound, Step: "unknown task"}
	t.mu.Lock()
	task := t.tasks[taskKey{call.Caller.Principal, id}]
	t.mu.Unlock()
	if task != nil {
		return task, nil
	}
	if call.Method == mcp.MethodTasksCancel {
		return nil, unknown // it does not run here, and a cancellation must not resume it
	}
	resume := call
	resume.Method, resume.Params = mcp.MethodToolsCall, rawjson.Apply(nil,
		rawjson.Put(rawjson.Quote(RunPythonName), "name"), rawjson.Put(rawjson.Quote(""), "arguments", "code"),
		rawjson.Put(rawjson.Quote(id), "_meta", mcp.MetaResume))
	peer := &taskPeer{tasks: t}
	peer.detach()
	resume.Peer = peer
	task, err := t.start(ctx, resume, id, peer)
	if err != nil {
		return nil, err
	}
	wait := time.NewTimer(resumeWait)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	case <-task.done:
		f, ok := errors.AsType[*drawbridge.Fault](task.err)
		if ok && (f.Code == drawbridge.NotFound || f.Code == drawbridge.Transient) {
			t.remove(call.Caller, task) // another process may still have it
		}
		if ok && f.Code == drawbridge.NotFound {
			return nil, unknown
		}
	}
	return task, nil
}

// result waits for the end of a task and returns the result of its call.
func (t *ScriptTasks) result(ctx context.Context, task *scriptTask) (drawbridge.Result, error) {
	select {
	case <-task.done:
	case <-ctx.Done():
		return drawbridge.Result{}, context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case task.status == taskCancelled:
		return drawbridge.Result{}, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput,
			Step: "return the result of the task", Err: errors.New("the task was cancelled")}
	case task.err != nil:
		return drawbridge.Result{}, task.err
	}
	related := rawjson.Put(rawjson.Quote(task.id), "_meta", mcp.MetaRelatedTask, "taskId")
	return drawbridge.Result{Raw: rawjson.Apply(task.result.Raw, related), Foreign: task.result.Foreign}, nil
}

// cancelTask cancels a task that runs, and waits for the end of its run.
func (t *ScriptTasks) cancelTask(task *scriptTask) {
	t.mu.Lock()
	running := task.status == taskWorking
	if running {
		task.status = taskCancelled
		task.cancel(errTaskCancelled)
	}
	t.mu.Unlock()
	if running {
		<-task.done
	}
}

// list returns the tasks of a principal, the oldest first.
func (t *ScriptTasks) list(principal string) drawbridge.Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	var mine []*scriptTask
	for key, task := range t.tasks {
		if key.principal == principal {
			mine = append(mine, task)
		}
	}
	slices.SortFunc(mine, func(a, b *scriptTask) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
	items := make([]json.RawMessage, len(mine))
	for i, task := range mine {
		items[i] = task.members(drawbridge.Legacy)
	}
	return drawbridge.Result{Raw: rawjson.Apply(nil, rawjson.Put(mustMarshal(items), "tasks"))}
}

// members returns the task object in the form of a protocol generation.
func (t *scriptTask) members(era drawbridge.ProtocolEra) json.RawMessage {
	ttl, poll := "ttl", "pollInterval"
	if era == drawbridge.Modern {
		ttl, poll = "ttlMs", "pollIntervalMs"
	}
	edits := []rawjson.Edit{
		rawjson.Put(rawjson.Quote(t.id), "taskId"),
		rawjson.Put(rawjson.Quote(t.status), "status"),
		rawjson.Put(mustMarshal(t.created.UTC().Format(time.RFC3339)), "createdAt"),
		rawjson.Put(mustMarshal(t.updated.UTC().Format(time.RFC3339)), "lastUpdatedAt"),
		rawjson.Put(mustMarshal(t.ttl.Milliseconds()), ttl),
		rawjson.Put(mustMarshal(taskPollInterval.Milliseconds()), poll),
	}
	if t.message != "" {
		edits = append(edits, rawjson.Put(rawjson.Quote(t.message), "statusMessage"))
	}
	return rawjson.Apply(nil, edits...)
}

// outcome returns the edits that add the result or the error of an ended task, in the stateless form.
func (t *scriptTask) outcome() []rawjson.Edit {
	switch t.status {
	case taskCompleted:
		return []rawjson.Edit{rawjson.Put(t.result.Raw, "result")}
	case taskFailed:
		raw := mcp.NewErrorObject(mcp.CodeInternal, t.message, nil)
		if f, ok := errors.AsType[*drawbridge.Fault](t.err); ok && f.Raw != nil {
			raw = f.Raw
		}
		return []rawjson.Edit{rawjson.Put(raw, "error")}
	}
	return nil
}

// A taskPeer passes the messages of a call to its client until the client was answered with the task. From then on the
// text of the last progress is the message of the task.
type taskPeer struct {
	drawbridge.Peer // nil if the client takes no messages
	tasks           *ScriptTasks
	task            *scriptTask
	noProgress      bool // the client asked for no progress

	mu       sync.Mutex
	detached bool
}

// detach ends the passing of messages.
func (p *taskPeer) detach() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.detached = true
}

// client returns the client's peer; nil after detach.
func (p *taskPeer) client() drawbridge.Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.detached {
		return nil
	}
	return p.Peer
}

// Notify implements [drawbridge.Peer].
func (p *taskPeer) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if method == mcp.NoteProgress {
		p.tasks.mu.Lock()
		if p.task.status == taskWorking {
			p.task.message, p.task.updated = rawjson.GetString(params, "message"), p.tasks.now()
		}
		p.tasks.mu.Unlock()
		if p.noProgress {
			return nil
		}
	}
	if client := p.client(); client != nil {
		return client.Notify(ctx, method, params)
	}
	return nil
}

// Request implements [drawbridge.Peer].
func (p *taskPeer) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if client := p.client(); client != nil {
		return client.Request(ctx, method, params)
	}
	return nil, &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: method,
		Err: errors.New("the client waits for a task, and takes no requests")}
}
