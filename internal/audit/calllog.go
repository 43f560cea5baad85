package audit

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/oklog/ulid/v2"
)

// A Recorder keeps records.
type Recorder interface {
	// Record keeps a record without secrets before it returns, so that a later crash does not lose it. After an error,
	// a *drawbridge.Fault, the record is not kept. It waits only for concurrent writers and is safe for concurrent use.
	Record(r Record) error
}

// A CallLog records calls in the audit. A nil CallLog records nothing.
type CallLog struct {
	recorder Recorder
	log      *slog.Logger

	// mu guards ids.
	mu  sync.Mutex
	ids *ulid.MonotonicEntropy

	definitions digestCache
	callers     callerCache
}

// NewCallLog returns a call log; nil if a is nil. The logger receives problems that no caller is told about.
func NewCallLog(a Recorder, log *slog.Logger) *CallLog {
	if a == nil {
		return nil
	}
	return &CallLog{recorder: a, log: log, ids: ulid.Monotonic(bufio.NewReader(rand.Reader), 0)}
}

// A LoggedCall is the audit entry of one call on its way. Its methods do nothing on nil.
type LoggedCall struct {
	log *CallLog
	// id is the call's id, and parent the id of the call that caused it.
	id, parent string
	call       drawbridge.Call
	viaCard    string // the card by which the call came, if it was not made directly
	began      time.Time
	// sent reports that the intent is recorded. refusal is the verdict that denied the call; nil if there is none.
	sent    bool
	refusal *refusal
	// approval and by identify the person's answer that allowed or refused the call.
	approval, by string
	// rewritings are what interceptors rewrote since the last record.
	rewritings []string
	// hiddenReason is why the target is hidden from its caller; nil if it is not.
	hiddenReason *drawbridge.Verdict
}

// A refusal is a verdict with its target.
type refusal struct {
	spec    drawbridge.Spec
	verdict drawbridge.Verdict
}

// callIDKey is the context key of a call id. The context carries it as a trace, for the parent of inner calls.
type callIDKey struct{}

// Begin begins the entry of a call, which End ends. A call that is made with the returned context has this call as its
// parent.
func (t *CallLog) Begin(ctx context.Context, call drawbridge.Call) (context.Context, *LoggedCall) {
	if t == nil {
		return ctx, nil
	}
	e := &LoggedCall{log: t, call: call, began: time.Now()}
	e.id = t.newID(e.began)
	e.parent = CallID(ctx)
	return context.WithValue(ctx, callIDKey{}, e.id), e
}

// CallID returns the id of the call that ctx was made for; it is empty outside a call.
func CallID(ctx context.Context) string {
	id, _ := ctx.Value(callIDKey{}).(string)
	return id
}

// RecordIntent records that the call is about to be sent, as the verdict allows. Every path to a card or server calls
// it after the guards. Arguments are those of a tool or prompt, if they were parsed; nil extracts them. After an error
// the call must not be sent.
func (e *LoggedCall) RecordIntent(call drawbridge.Call, arguments json.RawMessage, spec drawbridge.Spec,
	verdict drawbridge.Verdict) error {
	if e == nil {
		return nil
	}
	if err := e.log.recorder.Record(e.callRecord(&call, arguments, &spec, &verdict)); err != nil {
		return err
	}
	e.sent, e.rewritings = true, nil
	return nil
}

// NoteRefusal notes a verdict that denies the call.
func (e *LoggedCall) NoteRefusal(spec drawbridge.Spec, verdict drawbridge.Verdict) {
	if e != nil {
		e.refusal = &refusal{spec, verdict}
	}
}

// NoteInnerCall notes that the call is another one, which came through a card.
func (e *LoggedCall) NoteInnerCall(call drawbridge.Call, card string) {
	if e != nil {
		e.call, e.viaCard = call, card
	}
}

// NoteApproval notes a person's answer: its id and who answered.
func (e *LoggedCall) NoteApproval(approval, by string) {
	if e != nil {
		e.approval, e.by = approval, by
	}
}

// NoteRewriting notes that an interceptor replaced a part of the call, "arguments" or "result". before is the old value, of
// which the digest is kept.
func (e *LoggedCall) NoteRewriting(by, part string, before json.RawMessage) {
	if e == nil {
		return
	}
	sum := sha256.Sum256(before)
	e.rewritings = append(e.rewritings, by+": "+part+" sha256:"+hex.EncodeToString(sum[:]))
}

// NoteHidden notes why the target is hidden from its caller, who is not told.
func (e *LoggedCall) NoteHidden(why drawbridge.Verdict) {
	if e != nil {
		e.hiddenReason = &why
	}
}

// callRecord returns a record of the caller, the target and the verdict.
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
	r.Rewritten = strings.Join(e.rewritings, "; ")
	return r
}

// End records the outcome of the call and returns the caller's error. That is err, unless the outcome of a call that
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
			Step: "the call was sent, and its outcome cannot be recorded",
		}
	case err == nil:
		return failure
	}
	e.log.log.Error("record a refused call", "method", e.call.Method, "err", failure)
	return err
}

// outcomeRecord returns the last record of a call: its outcome or, if nothing was sent, the whole call.
func (e *LoggedCall) outcomeRecord(result drawbridge.Result, err error) (r Record) {
	now := time.Now()
	took := now.Sub(e.began)
	switch {
	case e.sent:
		r = Record{ID: e.id, Kind: Done, At: now, Rewritten: strings.Join(e.rewritings, "; ")}
	case e.refusal != nil && e.refusal.verdict != (drawbridge.Verdict{}):
		r = e.callRecord(&e.call, nil, &e.refusal.spec, &e.refusal.verdict)
		if f := drawbridge.AsFault(err); r.Reason == "" && f != nil && f.Err != nil &&
			f.Kind != drawbridge.UnknownCapability {
			r.Reason = f.Err.Error() // the person's answer, or that it expired
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

// RecordShieldAction records a change to a server's text: the object, the rule, and the reason.
func (t *CallLog) RecordShieldAction(server drawbridge.ServerID, name, rule, why string) {
	if t == nil {
		return
	}
	at := time.Now()
	err := t.recorder.Record(Record{ID: t.newID(at), Kind: Shield, At: at, Server: string(server), Card: name,
		Tool: name, Rule: rule, Reason: why})
	if err != nil {
		t.log.Error("record an action of the shield", "server", server, "rule", rule, "err", err)
	}
}

// FlaggedRecord returns the record of rules that the result of a call met. It has the call's id, so that it is a further
// record of that call. Without an id it gets one of its own.
func FlaggedRecord(id, server, card, tool string, rules []string) Record {
	at := time.Now()
	if id == "" {
		id = ulid.Make().String()
	}
	return Record{ID: id, Kind: Shield, At: at, Server: server, Card: card, Tool: tool, Rule: "flagged",
		Reason: "its answer met " + strings.Join(rules, ", ")}
}

// outcomeOf returns the outcome of a call. Searching for member names first is much cheaper than parsing a large
// result.
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

// newID returns an id for a call. The ids of one log are in the order in which they were made.
func (t *CallLog) newID(at time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, err := ulid.New(ulid.Timestamp(at), t.ids)
	if err != nil { // the ids of this millisecond are used up
		id = ulid.Make()
	}
	return id.String()
}

// Limits for remembered callers: their number, and the length of a session and client in bytes.
const (
	maxCallers      = 1024
	maxCallerKeyLen = 512
)

// A callerCache remembers the recorded form of sessions and clients.
type callerCache struct {
	mu  sync.RWMutex
	all map[callerKey]callerIdentity
}

// A callerKey is a session key with the client information of a call.
type callerKey struct{ session, client string }

// A callerIdentity is the recorded form of a session and a client.
type callerIdentity struct{ session, client string }

// get returns the recorded session and client of a caller. The session is a short hash: enough to distinguish sessions,
// and useless as a key.
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

// add computes and remembers the recorded form of a caller.
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

// loggedArguments returns the recorded arguments of params. People's answers to a server's questions are not recorded.
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

// callSubject returns the name, URI or task id in the params of a call without a target.
func callSubject(params json.RawMessage) string {
	for _, path := range [][]string{{"name"}, {"uri"}, {"ref", "name"}, {"ref", "uri"}, {"taskId"}} {
		if text := rawjson.GetString(params, path...); text != "" {
			return text
		}
	}
	return ""
}

// maxDigests bounds the remembered hashes.
const maxDigests = 4096

// A digestCache remembers the hashes of definitions by their address, because definitions are immutable.
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
