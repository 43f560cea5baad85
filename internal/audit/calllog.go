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

// A Recorder stores audit records.
type Recorder interface {
	// Record stores a record, without secrets, before it returns. A later crash does not lose the record. If Record
	// returns an error, which is a *drawbridge.Fault, the record is not stored. Record waits only for concurrent
	// writers and is safe for concurrent use.
	Record(r Record) error
}

// A SlotRecorder is a Recorder that can add the outcome of a call to the record of the call. So the call has one
// record.
type SlotRecorder interface {
	Recorder
	// RecordOpen is like Record for a record without an outcome. It also returns the place of the record.
	RecordOpen(r Record) (Slot, error)
	// Complete adds the outcome in the record r, which has the kind Done, to the record at the slot. If that is no
	// longer possible, or r has more than an outcome, Complete stores r like Record.
	Complete(s Slot, r Record) error
}

// A Slot is the place of a record that RecordOpen wrote. Only the recorder interprets it.
type Slot struct {
	File, Length int
	At           int64
	Sum          uint32
}

// A CallLog writes audit records of calls. The methods of a nil CallLog do nothing.
type CallLog struct {
	recorder Recorder
	slots    SlotRecorder // recorder, or nil if it cannot do this
	log      *slog.Logger

	// mu guards ids.
	mu  sync.Mutex
	ids *ulid.MonotonicEntropy

	definitions digestCache
	callers     callerCache
}

// NewCallLog returns a call log that writes its records to a. If a is nil, it returns nil. The logger receives errors
// that are not returned to a caller.
func NewCallLog(a Recorder, log *slog.Logger) *CallLog {
	if a == nil {
		return nil
	}
	slots, _ := a.(SlotRecorder)
	return &CallLog{recorder: a, slots: slots, log: log, ids: ulid.Monotonic(bufio.NewReader(rand.Reader), 0)}
}

// A LoggedCall collects the audit data of one call while the call runs. Its methods do nothing on nil.
type LoggedCall struct {
	log *CallLog
	// id identifies the call. parent is the ID of the outer call that made this call; empty for a call by a client.
	id, parent string
	call       drawbridge.Call
	viaCard    string // the card through which the call was made; empty for a direct call
	began      time.Time
	// sent reports whether RecordIntent has recorded the call, which is then sent. refusal contains the verdict that
	// denied the call; nil if no verdict denied it.
	sent    bool
	refusal *refusal
	// slot is the place of the record of a sent call. It is set only if the log has a SlotRecorder.
	slot Slot
	// approval is the ID of the answered approval or grant. by is the person who answered, and the place of the
	// answer.
	approval, by string
	// label is the label of the run, and origins are its first sources.
	label   string
	origins []string
	// rewritings describes the values that interceptors replaced since the last record.
	rewritings []string
	// hiddenReason is the verdict that hides the target from its caller; nil if the target is visible.
	hiddenReason *drawbridge.Verdict
}

// A refusal is a verdict that denied a call, with the call's target.
type refusal struct {
	spec    drawbridge.Spec
	verdict drawbridge.Verdict
}

// callIDKey is the context key under which Begin stores the ID of a call. A call that is made during that call reads
// the ID as its parent.
type callIDKey struct{}

// Begin returns a new LoggedCall for call, and a context that contains its ID. A call that begins with this context
// gets this ID as its parent. The caller of Begin must call End.
func (t *CallLog) Begin(ctx context.Context, call drawbridge.Call) (context.Context, *LoggedCall) {
	if t == nil {
		return ctx, nil
	}
	e := &LoggedCall{log: t, call: call, began: time.Now()}
	e.id = t.newID(e.began)
	e.parent = CallID(ctx)
	return context.WithValue(ctx, callIDKey{}, e.id), e
}

// CallID returns the ID of the call during which ctx is used, or an empty string outside a call.
func CallID(ctx context.Context) string {
	id, _ := ctx.Value(callIDKey{}).(string)
	return id
}

// ID returns the ID of the call; empty without an audit.
func (e *LoggedCall) ID() string {
	if e == nil {
		return ""
	}
	return e.id
}

// Sent reports whether RecordIntent has recorded the call.
func (e *LoggedCall) Sent() bool { return e != nil && e.sent }

// RecordIntent records that the verdict allows the call, before the call is sent. All code that sends a call to a
// card or a server must call RecordIntent after the guards have decided. If RecordIntent returns an error, the call
// must not be sent. arguments are the parsed arguments of a tool or prompt; if they are nil, they are read from the
// call's params.
func (e *LoggedCall) RecordIntent(call drawbridge.Call, arguments json.RawMessage, spec drawbridge.Spec,
	verdict drawbridge.Verdict) error {
	if e == nil {
		return nil
	}
	r := e.callRecord(&call, arguments, &spec, &verdict)
	var err error
	if e.log.slots != nil {
		e.slot, err = e.log.slots.RecordOpen(r)
	} else {
		err = e.log.recorder.Record(r)
	}
	if err != nil {
		return err
	}
	e.sent, e.rewritings = true, nil
	return nil
}

// NoteRefusal stores the verdict that denies the call. End writes it to the audit.
func (e *LoggedCall) NoteRefusal(spec drawbridge.Spec, verdict drawbridge.Verdict) {
	if e != nil {
		e.refusal = &refusal{spec, verdict}
	}
}

// NoteInnerCall replaces the logged call by the inner call in its arguments. card is the card through which the
// client made the inner call, such as call_tool.
func (e *LoggedCall) NoteInnerCall(call drawbridge.Call, card string) {
	if e != nil {
		e.call, e.viaCard = call, card
	}
}

// NoteApproval stores the ID of the approval or grant that allows the call, and the person who answered.
func (e *LoggedCall) NoteApproval(approval, by string) {
	if e != nil {
		e.approval, e.by = approval, by
	}
}

// NoteRewriting stores that the interceptor by replaced a part of the call: "arguments" or "result". before is the
// old value; only its SHA-256 is recorded.
func (e *LoggedCall) NoteRewriting(by, part string, before json.RawMessage) {
	if e == nil {
		return
	}
	sum := sha256.Sum256(before)
	e.rewritings = append(e.rewritings, by+": "+part+" sha256:"+hex.EncodeToString(sum[:]))
}

// NoteLabel stores the label of the run with which the call is made, and its first sources. Without a label, the run
// has read only what is trusted and not private.
func (e *LoggedCall) NoteLabel(label string, origins []string) {
	if e != nil {
		e.label, e.origins = label, origins
	}
}

// NoteHidden stores the verdict that hides the target from its caller. The reason is recorded, and not returned to
// the caller.
func (e *LoggedCall) NoteHidden(why drawbridge.Verdict) {
	if e != nil {
		e.hiddenReason = &why
	}
}

// callRecord returns a record with the caller, the target, the arguments and the verdict of a call.
func (e *LoggedCall) callRecord(call *drawbridge.Call, arguments json.RawMessage, spec *drawbridge.Spec,
	verdict *drawbridge.Verdict) Record {
	c := &call.Caller
	who := e.log.callers.get(c)
	r := Record{
		ID: e.id, Kind: Call, At: e.began, Parent: e.parent, Method: e.call.Method,
		Transport: string(e.call.Caller.Transport),
		Caller: Caller{
			Kind: c.Kind.String(), Principal: c.Principal, Client: who.client, Session: who.session,
			Thread: c.Thread, Run: c.Run, Rights: rightsOf(c.Agent),
		},
		ViaCard: e.viaCard,
	}
	r.Card, r.Server, r.Tool = string(spec.Name), string(spec.Server), spec.Tool
	r.Definition = e.log.definitions.get(spec.Definition)
	r.Arguments = withoutContent(loggedArguments(call.Method, call.Params, arguments), spec.Crossing)
	r.Effect, r.Rule, r.Reason = verdict.Effect.String(), verdict.Rule, verdict.Reason
	r.Approval, r.By = e.approval, e.by
	r.Rewritten = strings.Join(e.rewritings, "; ")
	r.Label, r.Origins = e.label, e.origins
	return r
}

// rightsOf returns the rights of an agent as they are recorded; empty without an agent. Of rights that are too long for
// a record, the SHA-256 of the whole text is recorded.
func rightsOf(r *drawbridge.AgentRights) string {
	if r == nil {
		return ""
	}
	recorded := struct {
		Mode     drawbridge.PermissionMode `json:"mode"`
		Tools    [][]string                `json:"tools,omitzero"`
		OwnTools []string                  `json:"ownTools,omitzero"`
		Digest   string                    `json:"sha256,omitzero"`
	}{Mode: r.Mode, Tools: r.Tools, OwnTools: r.OwnTools}
	text, err := json.Marshal(recorded)
	if err == nil && len(text) > maxText {
		sum := sha256.Sum256(text)
		recorded.Tools, recorded.OwnTools, recorded.Digest = nil, nil, hex.EncodeToString(sum[:])
		text, err = json.Marshal(recorded)
	}
	if err != nil {
		return "" // texts always have a JSON form
	}
	return string(text)
}

// End records the outcome of the call and returns the error for the caller. That is err, if the record is written. If
// the record of a sent call cannot be written, End returns an ambiguous fault. If the record of a call that was not
// sent cannot be written, End returns err, or the recorder's error if err is nil.
func (e *LoggedCall) End(result drawbridge.Result, err error) error {
	if e == nil {
		return err
	}
	var failure error
	if r := e.outcomeRecord(result, err); e.sent && e.log.slots != nil {
		failure = e.log.slots.Complete(e.slot, r)
	} else {
		failure = e.log.recorder.Record(r)
	}
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

// outcomeRecord returns the last record of a call: the outcome of a sent call, or the whole call if it was not sent.
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
			r.Reason = f.Err.Error() // contains the person's answer, or that the request expired
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

// RecordShieldAction records that the shield changed a text of a server. name is the tool or other item with the
// text, rule is the shield's rule, and why is the reason.
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

// FlaggedRecord returns an audit record which states that the result of a call matched rules of the shield. id is the
// ID of the call, so that the record belongs to the call. If id is empty, the record gets a new ID.
func FlaggedRecord(id, server, card, tool string, rules []string) Record {
	at := time.Now()
	if id == "" {
		id = ulid.Make().String()
	}
	return Record{ID: id, Kind: Shield, At: at, Server: server, Card: card, Tool: tool, Rule: "flagged",
		Reason: "its answer met " + strings.Join(rules, ", ")}
}

// outcomeOf returns the outcome of a call, and the code of a fault. It parses a member of the result only if the
// result contains the member's name as text, because that search is much cheaper than parsing.
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

// newID returns an ID for a call. A later ID is greater than an earlier one, except for rare IDs in the same
// millisecond.
func (t *CallLog) newID(at time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, err := ulid.New(ulid.Timestamp(at), t.ids)
	if err != nil { // no more ordered IDs in this millisecond
		id = ulid.Make()
	}
	return id.String()
}

// maxCallers is the maximum number of cached callers. maxCallerKeyLen is the maximum length of a cached session key
// plus client information, in bytes.
const (
	maxCallers      = 1024
	maxCallerKeyLen = 512
)

// A callerCache caches the texts that records contain for a caller's session and client.
type callerCache struct {
	mu  sync.RWMutex
	all map[callerKey]callerIdentity
}

// A callerKey is the session key and the client information of a call.
type callerKey struct{ session, client string }

// A callerIdentity is the recorded form of a session and a client.
type callerIdentity struct{ session, client string }

// get returns the texts that records contain for a caller's session and client. The text for the session is a short
// hash: it distinguishes sessions, and cannot be used as a session key.
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

// add computes the texts for a caller's session and client, and caches them.
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

// loggedArguments returns the part of params that is recorded as the arguments of a call. If read is not nil, it
// contains the parsed arguments of a tool or prompt, and is returned instead. A user's answers to questions of a
// server are not recorded.
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

// withoutContent returns the arguments of a call that writes to the workspace with the SHA-256 of the content in place
// of the content. The workspace has the content itself, and a person can remove it there; a record cannot be changed.
func withoutContent(arguments json.RawMessage, c *drawbridge.Crossing) json.RawMessage {
	if c == nil || c.Content == "" || len(arguments) == 0 {
		return arguments
	}
	if arguments[0] != '{' { // a model sent them as a text
		return digestOf(arguments)
	}
	for _, name := range []string{c.Content, "title"} {
		if value := rawjson.Get(arguments, name); value != nil {
			arguments = rawjson.Apply(arguments, rawjson.Put(digestOf(value), name))
		}
	}
	return arguments
}

// digestOf returns the SHA-256 of a JSON value as a JSON string.
func digestOf(value json.RawMessage) json.RawMessage {
	sum := sha256.Sum256(value)
	return rawjson.Quote("sha256:" + hex.EncodeToString(sum[:]))
}

// callSubject returns the name, the URI or the task ID in params. A record contains it if the called target is
// unknown.
func callSubject(params json.RawMessage) string {
	for _, path := range [][]string{{"name"}, {"uri"}, {"ref", "name"}, {"ref", "uri"}, {"taskId"}} {
		if text := rawjson.GetString(params, path...); text != "" {
			return text
		}
	}
	return ""
}

// maxDigests is the maximum number of cached hashes.
const maxDigests = 4096

// A digestCache caches the SHA-256 of definitions. The key is the address of the definition, because definitions are
// immutable.
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
