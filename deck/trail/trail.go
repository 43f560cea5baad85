// Package trail has each call leave its records in the audit: one before anything is sent, one before the answer goes out.
//
// A call that cannot be recorded is not sent, and an answer that cannot be recorded is not given: the caller is told that the
// call may have had its effect. A Trail that is nil leaves no records and stands in nobody's way.
package trail

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
	"github.com/drawbridge-mcp/drawbridge/audit"
	"github.com/drawbridge-mcp/drawbridge/wire"
	"github.com/oklog/ulid/v2"
)

// An Audit keeps records.
type Audit interface {
	// Record keeps a record, with no secret in it, before it returns: what dies afterwards does not lose it. The error is a
	// *drawbridge.Fault; the record is not kept then. It does not wait for others than those who write at the same time, and
	// may be called from several goroutines.
	Record(r audit.Record) error
}

// A Trail leads from calls to the audit.
type Trail struct {
	audit Audit
	log   *slog.Logger

	// mu guards ids.
	mu  sync.Mutex
	ids *ulid.MonotonicEntropy

	definitions digests
	callers     callers
}

// New makes a trail; it is nil where there is no audit. The logger is told what nobody else hears.
func New(a Audit, log *slog.Logger) *Trail {
	if a == nil {
		return nil
	}
	return &Trail{audit: a, log: log, ids: ulid.Monotonic(bufio.NewReader(rand.Reader), 0)}
}

// An Entry is one call on its way.
type Entry struct {
	t *Trail
	// id is the call's, parent that of the call in whose course it was made.
	id, parent string
	call       drawbridge.Call
	through    string // the card by which the call came, if it was not made directly
	began      time.Time
	// sent says that the intent is on record; barred is the verdict that was not to let it pass, nil where there was none.
	sent   bool
	barred *barred
	// approval and by say which answer of a person let it pass, or did not.
	approval, by string
	// veiled says why what was called is not there for its caller; nil where nobody asked for it.
	veiled *drawbridge.Verdict
}

// A barred is a verdict, and what it is about.
type barred struct {
	spec    drawbridge.Spec
	verdict drawbridge.Verdict
}

type key struct{}

// Enter begins the entry of a call, which Leave ends. What is asked of the trail by the context that it gives is about this
// call, and a call that is made with it has this one for its parent.
func (t *Trail) Enter(ctx context.Context, call drawbridge.Call) (context.Context, *Entry) {
	if t == nil {
		return ctx, nil
	}
	e := &Entry{t: t, call: call, began: time.Now()}
	e.id = t.id(e.began)
	if parent := of(ctx); parent != nil {
		e.parent = parent.id
	}
	return context.WithValue(ctx, key{}, e), e
}

// of is the entry that a context is about; nil where there is none.
func of(ctx context.Context) *Entry {
	e, _ := ctx.Value(key{}).(*Entry)
	return e
}

// Pass records that a call is about to be sent, as the verdict allows. It is asked on every way that leads to a card or a
// server, after the guards. Who has read the arguments of a tool or a prompt gives them; nil has them looked for. The error is the
// audit's: then the call may not be sent.
func Pass(ctx context.Context, call drawbridge.Call, arguments json.RawMessage, spec drawbridge.Spec, verdict drawbridge.Verdict) error {
	e := of(ctx)
	if e == nil {
		return nil
	}
	if err := e.t.audit.Record(e.about(&call, arguments, &spec, &verdict)); err != nil {
		return err
	}
	e.sent = true
	return nil
}

// Bar takes note of a verdict that does not let the call pass.
func Bar(ctx context.Context, spec drawbridge.Spec, verdict drawbridge.Verdict) {
	if e := of(ctx); e != nil {
		e.barred = &barred{spec, verdict}
	}
}

// Through takes note that a call turned out to be another one, which came through a card.
func Through(ctx context.Context, call drawbridge.Call, card string) {
	if e := of(ctx); e != nil {
		e.call, e.through = call, card
	}
}

// Answered takes note of the answer to a call that waited for a person: which one it was, and who gave it.
func Answered(ctx context.Context, approval, by string) {
	if e := of(ctx); e != nil {
		e.approval, e.by = approval, by
	}
}

// Veil takes note of why what is called is not there for its caller, who is not told.
func Veil(ctx context.Context, why drawbridge.Verdict) {
	if e := of(ctx); e != nil {
		e.veiled = &why
	}
}

// about is a record of what is called, by whom.
func (e *Entry) about(call *drawbridge.Call, arguments json.RawMessage, spec *drawbridge.Spec, verdict *drawbridge.Verdict) audit.Record {
	c := &call.Caller
	who := e.t.callers.of(c)
	r := audit.Record{
		ID: e.id, Kind: audit.Call, At: e.began, Parent: e.parent, Method: e.call.Method, Door: string(e.call.Caller.Door),
		Caller: audit.Caller{
			Kind: c.Kind.String(), Principal: c.Principal, Client: who.client, Session: who.session, Thread: c.Thread, Run: c.Run,
		},
		Through: e.through,
	}
	r.Card, r.Server, r.Tool = string(spec.Name), string(spec.Server), spec.Tool
	r.Definition = e.t.definitions.of(spec.Definition)
	r.Arguments = argumentsOf(call.Method, call.Params, arguments)
	r.Effect, r.Rule, r.Reason = verdict.Effect.String(), verdict.Rule, verdict.Reason
	r.Approval, r.By = e.approval, e.by
	return r
}

// Leave records what came of the call, and gives what the caller is to be told: err, unless the outcome of a call that was
// sent cannot be recorded.
func (e *Entry) Leave(result drawbridge.Result, err error) error {
	if e == nil {
		return err
	}
	failure := e.t.audit.Record(e.end(result, err))
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
	e.t.log.Error("a call that was refused could not be recorded", "method", e.call.Method, "err", failure)
	return err
}

// end is the last record of a call: what came of it or, where nothing was sent, all there is to say.
func (e *Entry) end(result drawbridge.Result, err error) (r audit.Record) {
	now := time.Now()
	took := now.Sub(e.began)
	switch {
	case e.sent:
		r = audit.Record{ID: e.id, Kind: audit.Done, At: now}
	case e.barred != nil && e.barred.verdict != (drawbridge.Verdict{}):
		r = e.about(&e.call, nil, &e.barred.spec, &e.barred.verdict)
		if f := drawbridge.AsFault(err); r.Reason == "" && f != nil && f.Err != nil && f.Kind != drawbridge.UnknownCapability {
			r.Reason = f.Err.Error() // what a person said, or that nobody said anything
		}
	default:
		r = e.about(&e.call, nil, &drawbridge.Spec{Name: drawbridge.CardName(subjectOf(e.call.Params))}, &drawbridge.Verdict{})
		if r.Effect = ""; e.veiled != nil {
			r.Rule, r.Reason = e.veiled.Rule, e.veiled.Reason
		}
	}
	r.Duration, r.Bytes = took, len(result.Raw)
	r.Outcome, r.Code = outcomeOf(result, err)
	switch {
	case e.sent, err == nil:
	case r.Effect != "":
		r.Outcome = audit.Refused
	case r.Code == string(drawbridge.NotFound):
		r.Outcome = audit.Unknown
	}
	return r
}

// Shield records something that was done to what a server says: to which of its objects, by which rule, and why.
func (t *Trail) Shield(server drawbridge.ServerID, name, rule, why string) {
	if t == nil {
		return
	}
	at := time.Now()
	err := t.audit.Record(audit.Record{ID: t.id(at), Kind: audit.Shield, At: at, Server: string(server), Card: name, Tool: name, Rule: rule, Reason: why})
	if err != nil {
		t.log.Error("something that the shield did could not be recorded", "server", server, "rule", rule, "err", err)
	}
}

// outcomeOf says what came of a call. The searches for bare words are much cheaper than reading a large result.
func outcomeOf(result drawbridge.Result, err error) (outcome audit.Outcome, code string) {
	if f := drawbridge.AsFault(err); f != nil {
		if f.Ambiguous {
			return audit.Ambiguous, string(f.Code)
		}
		return audit.Fault, string(f.Code)
	}
	if wire.MayHave(result.Raw, `"isError"`) && string(wire.Get(result.Raw, "isError")) == "true" {
		return audit.IsError, ""
	}
	if wire.MayHave(result.Raw, `"resultType"`) && (wire.MayHave(result.Raw, `"input_required"`) || wire.MayHave(result.Raw, `"task"`)) {
		switch wire.GetText(result.Raw, "resultType") {
		case "input_required":
			return audit.Asked, ""
		case "task":
			return audit.Task, ""
		}
	}
	return audit.OK, ""
}

// id makes the ID of a call: those of one trail are in the order in which they were made.
func (t *Trail) id(at time.Time) string {
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
	maxCallers = 1024
	longCaller = 512
)

// callers remembers what is kept of a session and of a client that is not read off what they say without effort.
type callers struct {
	mu  sync.RWMutex
	all map[said]known
}

// A said is the key of a session, and what the client says of itself with each call.
type said struct{ session, client string }

// A known is what is kept of a said.
type known struct{ session, client string }

// of is what is kept of the session and the client of a caller. Of the session there is enough to tell it from others, and too
// little to be it.
func (k *callers) of(c *drawbridge.Caller) known {
	if c.Session == "" && len(c.Client) == 0 {
		return known{}
	}
	k.mu.RLock()
	kept, met := k.all[said{c.Session, string(c.Client)}]
	k.mu.RUnlock()
	if met {
		return kept
	}
	return k.meet(c)
}

// meet finds out what is kept of a caller, and remembers it.
func (k *callers) meet(c *drawbridge.Caller) (kept known) {
	if len(c.Client) > 0 {
		kept.client = wire.GetText(c.Client, "name")
		if version := wire.GetText(c.Client, "version"); version != "" {
			kept.client += " " + version
		}
	}
	if c.Session != "" {
		sum := sha256.Sum256([]byte(c.Session))
		kept.session = hex.EncodeToString(sum[:4])
	}
	if len(c.Session)+len(c.Client) > longCaller {
		return kept
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= maxCallers {
		k.all = map[said]known{}
	}
	k.all[said{c.Session, string(c.Client)}] = kept
	return kept
}

// argumentsOf gives what is kept of params as arguments. What people answered to a server's questions is none of it.
func argumentsOf(method string, params, read json.RawMessage) json.RawMessage {
	switch method {
	case wire.MethodToolsCall, wire.MethodPromptsGet:
		if read != nil {
			return read
		}
		return wire.Get(params, "arguments")
	case wire.MethodComplete:
		return wire.Get(params, "argument")
	case wire.MethodResourcesRead, wire.MethodSubscribe, wire.MethodDirectoryRead, wire.MethodSkillsGet, wire.MethodSkillsList,
		wire.MethodTasksGet, wire.MethodTasksUpdate, wire.MethodTasksCancel, wire.MethodTasksResult, wire.MethodTasksList:
		return nil
	}
	if len(params) == 0 || params[0] != '{' {
		return nil
	}
	return wire.Apply(params, wire.Drop("_meta"), wire.Drop("requestState"), wire.Drop("inputResponses"))
}

// subjectOf is what the params of a call that found nothing are about.
func subjectOf(params json.RawMessage) string {
	for _, path := range [][]string{{"name"}, {"uri"}, {"ref", "name"}, {"ref", "uri"}, {"taskId"}} {
		if text := wire.GetText(params, path...); text != "" {
			return text
		}
	}
	return ""
}

// maxDigests bounds how many definitions' hashes are remembered.
const maxDigests = 4096

// digests remembers the hashes of definitions, which are not changed after they were made: of each by where it begins.
type digests struct {
	mu  sync.RWMutex
	all map[*byte]string
}

func (d *digests) of(definition json.RawMessage) string {
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
