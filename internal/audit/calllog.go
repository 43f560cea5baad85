package audit

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/oklog/ulid/v2"
)

// An Recorder keeps records.
type Recorder interface {
	// Record keeps a record, with no secret in it, before it returns: what dies afterwards does not lose it. The error
	// is a
	// *drawbridge.Fault; the record is not kept then. It does not wait for others than those who write at the same
	// time, and may be called from several goroutines.
	Record(r Record) error
}

// A CallLog leads from calls to the audit.
type CallLog struct {
	recorder Recorder
	log      *slog.Logger

	// mu guards ids.
	mu  sync.Mutex
	ids *ulid.MonotonicEntropy

	definitions digestCache
	callers     callerCache
}

// NewCallLog makes a trail; it is nil where there is no audit. The logger is told what nobody else hears.
func NewCallLog(a Recorder, log *slog.Logger) *CallLog {
	if a == nil {
		return nil
	}
	return &CallLog{recorder: a, log: log, ids: ulid.Monotonic(bufio.NewReader(rand.Reader), 0)}
}

// An LoggedCall is one call on its way.
type LoggedCall struct {
	log *CallLog
	// id is the call's, parent that of the call in whose course it was made.
	id, parent string
	call       drawbridge.Call
	viaCard    string // the card by which the call came, if it was not made directly
	began      time.Time
	// sent reports that the intent is on record; barred is the verdict that was not to let it pass, nil where there was
	// none.
	sent    bool
	refusal *refusal
	// approval and by say which answer of a person let it pass, or did not.
	approval, by string
	// hiddenReason says why what was called is not there for its caller; nil where nobody asked for it.
	hiddenReason *drawbridge.Verdict
}

// A refusal is a verdict, and what it is about.
type refusal struct {
	spec    drawbridge.Spec
	verdict drawbridge.Verdict
}

// callIDKey is the context key of a call id. The context carries it as a trace, for the parent of inner calls.
type callIDKey struct{}

// Begin begins the entry of a call, which Leave ends. What is asked of the trail by the context that it gives is about
// this call, and a call that is made with it has this one for its parent.
func (t *CallLog) Begin(ctx context.Context, call drawbridge.Call) (context.Context, *LoggedCall) {
	if t == nil {
		return ctx, nil
	}
	e := &LoggedCall{log: t, call: call, began: time.Now()}
	e.id = t.newID(e.began)
	e.parent = callIDFromContext(ctx)
	return context.WithValue(ctx, callIDKey{}, e.id), e
}

// callIDFromContext returns the id of the call that ctx was made for; it is empty outside a call.
func callIDFromContext(ctx context.Context) string {
	id, _ := ctx.Value(callIDKey{}).(string)
	return id
}

// RecordIntent records that a call is about to be sent, as the verdict allows. It is asked on every way that leads to
// a card or a server, after the guards. Who has read the arguments of a tool or a prompt gives them; nil has them
// looked for. The error is the audit's: then the call may not be sent.
func (e *LoggedCall) RecordIntent(call drawbridge.Call, arguments json.RawMessage, spec drawbridge.Spec,
	verdict drawbridge.Verdict) error {
	if e == nil {
		return nil
	}
	if err := e.log.recorder.Record(e.callRecord(&call, arguments, &spec, &verdict)); err != nil {
		return err
	}
	e.sent = true
	return nil
}

// NoteRefusal takes note of a verdict that does not let the call pass.
func (e *LoggedCall) NoteRefusal(spec drawbridge.Spec, verdict drawbridge.Verdict) {
	if e != nil {
		e.refusal = &refusal{spec, verdict}
	}
}

// NoteInnerCall takes note that a call turned out to be another one, which came through a card.
func (e *LoggedCall) NoteInnerCall(call drawbridge.Call, card string) {
	if e != nil {
		e.call, e.viaCard = call, card
	}
}

// NoteApproval takes note of the answer to a call that waited for a person: which one it was, and who gave it.
func (e *LoggedCall) NoteApproval(approval, by string) {
	if e != nil {
		e.approval, e.by = approval, by
	}
}

// NoteHidden takes note of why what is called is not there for its caller, who is not told.
func (e *LoggedCall) NoteHidden(why drawbridge.Verdict) {
	if e != nil {
		e.hiddenReason = &why
	}
}

// callRecord is a record of what is called, by whom.
func (e *LoggedCall) callRecord(call *drawbridge.Call, arguments json.RawMessage, spec *drawbridge.Spec,
	verdict *drawbridge.Verdict) Record {
	c := &call.Caller
	who := e.log.callers.get(c)
	r := Record{
		ID: e.id, Kind: Call, At: e.began, Parent: e.parent, Method: e.call.Method,
		Transport: string(e.call.Caller.Transport),
		Caller: Caller{
			Kind: c.Kind.String(), Principal: c.Principal, Client: who.client, Session: who.session,
			Thread: c.Thread, Run: c.Run,
		},
		ViaCard: e.viaCard,
	}
	r.Card, r.Server, r.Tool = string(spec.Name), string(spec.Server), spec.Tool
	r.Definition = e.log.definitions.get(spec.Definition)
	r.Arguments = loggedArguments(call.Method, call.Params, arguments)
	r.Effect, r.Rule, r.Reason = verdict.Effect.String(), verdict.Rule, verdict.Reason
	r.Approval, r.By = e.approval, e.by
	return r
}

// End records what came of the call, and gives what the caller is to be told: err, unless the outcome of a call that
// was sent cannot be recorded.
func (e *LoggedCall) End(result drawbridge.Result, err error) error {
	if e == nil {
		return err
	}
	failure := e.log.recorder.Record(e.outcomeRecord(result, err))
	switch {
	case failure == nil:
		return err
	case e.sent:
		return &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.ServerError, Ambiguous: true, Err: failure,
			Step: "the call was sent, and what came of it cannot be recorded",
		}
	case err == nil:
		return failure
	}
	e.log.log.Error("a call that was refused could not be recorded", "method", e.call.Method, "err", failure)
	return err
}

// outcomeRecord is the last record of a call: what came of it or, where nothing was sent, all there is to say.
func (e *LoggedCall) outcomeRecord(result drawbridge.Result, err error) (r Record) {
	now := time.Now()
	took := now.Sub(e.began)
	switch {
	case e.sent:
		r = Record{ID: e.id, Kind: Done, At: now}
	case e.refusal != nil && e.refusal.verdict != (drawbridge.Verdict{}):
		r = e.callRecord(&e.call, nil, &e.refusal.spec, &e.refusal.verdict)
		if f := drawbridge.AsFault(err); r.Reason == "" && f != nil && f.Err != nil &&
			f.Kind != drawbridge.UnknownCapability {
			r.Reason = f.Err.Error() // what a person said, or that nobody said anything
		}
	default:
		r = e.callRecord(&e.call, nil, &drawbridge.Spec{Name: drawbridge.CardName(callSubject(e.call.Params))},
			&drawbridge.Verdict{})
		if r.Effect = ""; e.hiddenReason != nil {
			r.Rule, r.Reason = e.hiddenReason.Rule, e.hiddenReason.Reason
		}
	}
	r.Duration, r.Bytes = took, len(result.Raw)
	r.Outcome, r.Code = outcomeOf(result, err)
	switch {
	case e.sent, err == nil:
	case r.Effect != "":
		r.Outcome = Refused
	case r.Code == string(drawbridge.NotFound):
		r.Outcome = Unknown
	}
	return r
}

// RecordShieldAction records something that was done to what a server says: to which of its objects, by which rule,
// and why.
func (t *CallLog) RecordShieldAction(server drawbridge.ServerID, name, rule, why string) {
	if t == nil {
		return
	}
	at := time.Now()
	err := t.recorder.Record(Record{ID: t.newID(at), Kind: Shield, At: at, Server: string(server), Card: name,
		Tool: name, Rule: rule, Reason: why})
	if err != nil {
		t.log.Error("something that the shield did could not be recorded", "server", server, "rule", rule, "err", err)
	}
}

// outcomeOf says what came of a call. The searches for bare words are much cheaper than reading a large result.
func outcomeOf(result drawbridge.Result, err error) (outcome Outcome, code string) {
	if f := drawbridge.AsFault(err); f != nil {
		if f.Ambiguous {
			return Ambiguous, string(f.Code)
		}
		return Fault, string(f.Code)
	}
	if rawjson.MayContain(result.Raw, `"isError"`) && string(rawjson.Get(result.Raw, "isError")) == "true" {
		return IsError, ""
	}
	if rawjson.MayContain(result.Raw, `"resultType"`) && (rawjson.MayContain(result.Raw, `"input_required"`) ||
		rawjson.MayContain(result.Raw, `"task"`)) {
		switch rawjson.GetString(result.Raw, "resultType") {
		case "input_required":
			return Asked, ""
		case "task":
			return Task, ""
		}
	}
	return OK, ""
}

// newID makes the ID of a call: those of one trail are in the order in which they were made.
func (t *CallLog) newID(at time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, err := ulid.New(ulid.Timestamp(at), t.ids)
	if err != nil { // so many in one millisecond that there is no next one
		id = ulid.Make()
	}
	return id.String()
}

// The bounds of what is remembered of callers: how many, and how long what they come with may be.
const (
	maxCallers      = 1024
	maxCallerKeyLen = 512
)

// callerCache remembers what is kept of a session and of a client that is not read off what they say without effort.
type callerCache struct {
	mu  sync.RWMutex
	all map[callerKey]callerIdentity
}

// A callerKey is the key of a session, and what the client says of itself with each call.
type callerKey struct{ session, client string }

// A callerIdentity is what is kept of a said.
type callerIdentity struct{ session, client string }

// get is what is kept of the session and the client of a caller. Of the session there is enough to tell it from
// others, and too little to be it.
func (k *callerCache) get(c *drawbridge.Caller) callerIdentity {
	if c.Session == "" && len(c.Client) == 0 {
		return callerIdentity{}
	}
	k.mu.RLock()
	kept, met := k.all[callerKey{c.Session, string(c.Client)}]
	k.mu.RUnlock()
	if met {
		return kept
	}
	return k.add(c)
}

// add finds out what is kept of a caller, and remembers it.
func (k *callerCache) add(c *drawbridge.Caller) (kept callerIdentity) {
	if len(c.Client) > 0 {
		kept.client = rawjson.GetString(c.Client, "name")
		if version := rawjson.GetString(c.Client, "version"); version != "" {
			kept.client += " " + version
		}
	}
	if c.Session != "" {
		sum := sha256.Sum256([]byte(c.Session))
		kept.session = hex.EncodeToString(sum[:4])
	}
	if len(c.Session)+len(c.Client) > maxCallerKeyLen {
		return kept
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= maxCallers {
		k.all = map[callerKey]callerIdentity{}
	}
	k.all[callerKey{c.Session, string(c.Client)}] = kept
	return kept
}

// loggedArguments returns what is kept of params as arguments. What people answered to a server's questions is none of
// it.
func loggedArguments(method string, params, read json.RawMessage) json.RawMessage {
	switch method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet:
		if read != nil {
			return read
		}
		return rawjson.Get(params, "arguments")
	case mcp.MethodComplete:
		return rawjson.Get(params, "argument")
	case mcp.MethodResourcesRead, mcp.MethodSubscribe, mcp.MethodDirectoryRead, mcp.MethodSkillsGet,
		mcp.MethodSkillsList,
		mcp.MethodTasksGet, mcp.MethodTasksUpdate, mcp.MethodTasksCancel, mcp.MethodTasksResult, mcp.MethodTasksList:
		return nil
	}
	if len(params) == 0 || params[0] != '{' {
		return nil
	}
	return rawjson.Apply(params, rawjson.Drop("_meta"), rawjson.Drop("requestState"), rawjson.Drop("inputResponses"))
}

// callSubject is what the params of a call that found nothing are about.
func callSubject(params json.RawMessage) string {
	for _, path := range [][]string{{"name"}, {"uri"}, {"ref", "name"}, {"ref", "uri"}, {"taskId"}} {
		if text := rawjson.GetString(params, path...); text != "" {
			return text
		}
	}
	return ""
}

// maxDigests bounds how many definitions' hashes are remembered.
const maxDigests = 4096

// digestCache remembers the hashes of definitions, which are not changed after they were made: of each by where it
// begins.
type digestCache struct {
	mu  sync.RWMutex
	all map[*byte]string
}

func (d *digestCache) get(definition json.RawMessage) string {
	if len(definition) == 0 {
		return ""
	}
	at := &definition[0]
	d.mu.RLock()
	text, known := d.all[at]
	d.mu.RUnlock()
	if known {
		return text
	}
	sum := sha256.Sum256(definition)
	text = hex.EncodeToString(sum[:])
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil || len(d.all) >= maxDigests {
		d.all = map[*byte]string{}
	}
	d.all[at] = text
	return text
}
