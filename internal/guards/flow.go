package guards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/oklog/ulid/v2"
)

// FlowRule is the name of the guard of information flow in audit records and messages.
const FlowRule = "flow"

const (
	// maxFlowRuns is the number of runs in memory. The labels of others are in the store.
	maxFlowRuns = 1000
	// callerRunEnd is the time without a call after which the run of a caller without a session ends.
	callerRunEnd = time.Hour
	// defaultEndorsement is how long an endorsement holds by default.
	defaultEndorsement = 8 * time.Hour
)

// A FlowStore stores what must survive a restart: the labels of runs and files, and endorsements.
type FlowStore interface {
	FlowRun(ctx context.Context, key string) (store.FlowRun, bool, error)
	JoinFlowRun(ctx context.Context, key string, label flow.Label, origins []flow.Source) error
	JoinFlowFiles(ctx context.Context, files ...store.FlowFile) error
	FlowFiles(ctx context.Context) ([]store.FlowFile, error)
	EndorsementStore
}

// An EndorsementStore stores the values that a person has endorsed.
type EndorsementStore interface {
	Endorsed(ctx context.Context, e store.Endorsement) (bool, error)
	AddEndorsements(ctx context.Context, valid time.Duration, all ...store.Endorsement) error
}

// FlowTools are the names of Drawbridge's own tools that matter to the guard.
type FlowTools struct {
	// Edits write files, Files read them, Commands run commands, and Fetches send their arguments to the web. Exports
	// write pages into a directory.
	Edits, Files, Commands, Fetches, Exports []string
}

// FlowOptions are the options of a [FlowGuard].
type FlowOptions struct {
	Store FlowStore
	Tools FlowTools
	// Context resolves the paths of own tools. Roots are directories of the person's projects besides the caller's own.
	Context deck.Context
	Roots   []string
	// PrivateFiles and PrivatePages are globs of files and of titles or slugs of pages that are private.
	PrivateFiles, PrivatePages []string
	// Off turns the guard off for Drawbridge's own agent: labels are still followed. Clients is what is judged for
	// other clients: "private" (only private text), "all", or "off".
	Off     bool
	Clients string
	// Descriptions are those of the servers; nil has none.
	Descriptions Descriptions
	// Annotations adds the labels of results of servers to their _meta, for clients.
	Annotations bool
	// Endorsement is how long an endorsement holds; 0 means 8 hours.
	Endorsement time.Duration
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// A FlowGuard follows where the values of runs come from, and decides what they may do. Each run has a label: see
// package flow. A call that writes or sends with a value that is not trusted needs a person's endorsement of the value;
// a call that sends with private text in reach needs one of the call. The labels of runs and of files that they write
// are stored before the caller gets a result. A label that cannot be read or stored refuses the call.
type FlowGuard struct {
	o     FlowOptions
	rows  *RowLabels
	files fileLabels
	texts describedTexts
	// ctx is for the store while a source is noted.
	ctx context.Context

	mu   sync.Mutex
	runs *lru.Cache[string, *flowRun]
}

type flowRun struct {
	*flow.Run
	// The other fields are guarded by FlowGuard.mu. used is the time of the last call, dir the directory of the caller,
	// saved the label in the store, and calls are those in progress.
	used  time.Time
	dir   string // as realFile returns it
	saved flow.Label
	calls []*observedCall
}

var (
	_ deck.CallObserver   = (*FlowGuard)(nil)
	_ deck.FlowTracker    = (*FlowGuard)(nil)
	_ deck.LabellingGuard = (*FlowGuard)(nil)
)

// NewFlowGuard returns a guard. rows are the labels of servers. The end of ctx does not end the guard.
func NewFlowGuard(ctx context.Context, o FlowOptions, rows *RowLabels) *FlowGuard {
	runs, err := lru.New[string, *flowRun](maxFlowRuns)
	if err != nil {
		panic(err) // the size is positive
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Endorsement == 0 {
		o.Endorsement = defaultEndorsement
	}
	for _, globs := range []*[]string{&o.PrivateFiles, &o.PrivatePages} {
		lower := make([]string, len(*globs))
		for i, glob := range *globs {
			lower[i] = strings.ToLower(glob)
		}
		*globs = lower
	}
	for i, root := range o.Roots {
		o.Roots[i] = realFile(root)
	}
	g := &FlowGuard{o: o, rows: rows, runs: runs, ctx: context.WithoutCancel(ctx)}
	g.files.guard = g
	return g
}

// flowKey returns the key of the run of a call: for the agent, its thread with all sub-agents and scripts.
func flowKey(run string) string {
	if thread, ok := strings.CutPrefix(run, "run:"); ok {
		thread, _, _ = strings.Cut(thread, "/")
		return "thread:" + thread
	}
	return run
}

// run returns the label of a run, see flowRun.
func (g *FlowGuard) run(ctx context.Context, key string) (*flow.Run, error) {
	r, err := g.flowRun(ctx, key)
	if err != nil {
		return nil, err
	}
	return r.Run, nil
}

// flowRun returns the run with a key of [deck.RunOf].
func (g *FlowGuard) flowRun(ctx context.Context, key string) (*flowRun, error) {
	key = flowKey(key)
	now := g.o.Now()
	isCaller := strings.HasPrefix(key, "caller:")
	g.mu.Lock()
	r, ok := g.runs.Get(key)
	if ok && isCaller && now.Sub(r.used) > callerRunEnd {
		r, ok = &flowRun{Run: flow.NewRun(flow.Clean, nil), saved: flow.Clean}, true
		g.runs.Add(key, r)
	}
	if ok {
		r.used = now
		g.mu.Unlock()
		return r, nil
	}
	g.mu.Unlock()
	stored, found, err := g.o.Store.FlowRun(ctx, sha256Hex([]byte(key)))
	if err != nil {
		return nil, err
	}
	label := flow.Clean
	switch {
	case found && (!isCaller || now.Sub(stored.At) <= callerRunEnd):
		label = stored.Label
	case isForgotten(key, now):
		label = flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Private}
		stored.Origins = []flow.Source{{Kind: "session", Name: "that is so old that its label is not known", Label: label}}
	default:
		stored.Origins = nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r, ok := g.runs.Get(key); ok { // another call was faster
		return r, nil
	}
	r = &flowRun{Run: flow.NewRun(label, stored.Origins), used: now, saved: label}
	g.runs.Add(key, r)
	return r, nil
}

// isForgotten reports whether the store may have had a label of a run that it has removed, because the session of the
// agent is so old.
func isForgotten(key string, now time.Time) bool {
	id, err := ulid.ParseStrict(strings.TrimPrefix(key, "thread:"))
	return err == nil && now.Sub(ulid.Time(id.Time())) > store.FlowRunRetention
}

// save stores the label of a run.
func (g *FlowGuard) save(ctx context.Context, key string, r *flow.Run) error {
	return g.o.Store.JoinFlowRun(context.WithoutCancel(ctx), sha256Hex([]byte(flowKey(key))), r.Label(), r.Origins())
}

// LabelOfRun returns the label of the run of a caller, and the sources that explain it.
func (g *FlowGuard) LabelOfRun(ctx context.Context, caller drawbridge.Caller) (flow.Label, []flow.Source, error) {
	r, err := g.run(ctx, deck.RunOf(caller))
	if err != nil {
		return flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Private}, nil, err
	}
	return r.Label(), r.Origins(), nil
}

// RunLabel implements [deck.LabellingGuard]. The calls of a person have no label.
func (g *FlowGuard) RunLabel(ctx context.Context, caller drawbridge.Caller) (label string, origins []string) {
	switch caller.Kind {
	case drawbridge.Agent, drawbridge.External, drawbridge.Sandbox:
	default:
		return "", nil
	}
	r, err := g.run(ctx, deck.RunOf(caller))
	if err != nil {
		return "", nil // the call is refused
	}
	l := r.Label()
	if !l.Taints() || g.judged(caller) != "all" && l.Confidentiality < flow.Private { // values of clients are not judged
		return "", nil
	}
	sources := r.Origins()
	first := flow.First(l, sources)
	if first != nil {
		origins = append(origins, first.String())
	}
	for i := range sources {
		if len(origins) == audit.MaxOrigins {
			break
		}
		if &sources[i] != first {
			origins = append(origins, sources[i].String())
		}
	}
	return l.String(), origins
}

// Typed notes what the person has typed in the run of a caller.
func (g *FlowGuard) Typed(ctx context.Context, caller drawbridge.Caller, text string) error {
	r, err := g.run(ctx, deck.RunOf(caller))
	if err == nil {
		r.Typed(text)
	}
	return err
}

// judged returns what is judged in calls of a caller: "all", "private" or "off".
func (g *FlowGuard) judged(caller drawbridge.Caller) string {
	switch caller.OriginKind() {
	case drawbridge.Agent:
		if g.o.Off {
			return "off"
		}
		return "all"
	case drawbridge.External:
		return g.o.Clients
	}
	return "off" // a person answers for what the person does
}

// Decide implements [deck.Guard].
func (g *FlowGuard) Decide(ctx context.Context, q deck.Question) drawbridge.Verdict {
	allow := drawbridge.Verdict{Effect: drawbridge.Allow}
	judged := g.judged(q.Caller)
	if judged == "off" {
		return allow
	}
	r, err := g.run(ctx, deck.RunOf(q.Caller))
	if err != nil {
		return drawbridge.Verdict{Effect: drawbridge.Deny, Rule: FlowRule, Reason: "the label of the run cannot be read", Next: "drawbridge doctor"}
	}
	isCommand := q.Spec.Server == "" && slices.Contains(g.o.Tools.Commands, q.Spec.Tool)
	if judged != "all" && !isCommand && r.Label().Confidentiality < flow.Private {
		return allow
	}
	found, err := g.check(ctx, r, q, judged)
	switch {
	case err != nil:
		return drawbridge.Verdict{Effect: drawbridge.Deny, Rule: FlowRule, Reason: "the endorsements cannot be read", Next: "drawbridge doctor"}
	case found.Empty():
		return allow
	}
	return drawbridge.Verdict{Effect: drawbridge.Ask, Rule: FlowRule, Reason: findingText(found, g.o.Endorsement),
		Next: "use values that the person has typed, or let the person endorse these"}
}

// check judges the arguments of a call.
func (g *FlowGuard) check(ctx context.Context, r *flow.Run, q deck.Question, judged string) (flow.Finding, error) {
	act := g.act(ctx, q)
	if judged == "private" {
		act.Needs = flow.Untrusted
	} else {
		act.Described = func(value string) *flow.Source { return g.described(&q, value) }
	}
	var failed error
	arguments := argumentsOf(q)
	isEndorsed := func(path, text string, sends bool) bool {
		ok, err := g.o.Store.Endorsed(ctx, endorsementOf(q, path, text, sends))
		failed = errors.Join(failed, err)
		return ok
	}
	found := r.Check(act, arguments, isEndorsed)
	if run := g.runFile(ctx, q, arguments); run != nil && judged == "all" && !isEndorsed(run.Path, run.Text, false) {
		found.Values = append(found.Values, *run)
	}
	return found, failed
}

// argumentsOf returns the values that a call carries.
func argumentsOf(q deck.Question) json.RawMessage {
	switch q.Method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet:
		if arguments := deck.ArgumentsInText(rawjson.Get(q.Params, "arguments")); arguments != nil {
			return arguments
		}
		return rawjson.Get(q.Params, "arguments")
	}
	return rawjson.Apply(q.Params, rawjson.Drop("_meta"))
}

// act returns what a call does with its values. What a server that is not trusted says about its own tools counts only
// for the integrity of values: private text is not sent to it, whatever it says.
func (g *FlowGuard) act(ctx context.Context, q deck.Question) flow.Act {
	if q.Spec.Server == "" {
		act := flow.Act{Needs: flow.Untrusted, TextsOnly: true}
		switch {
		case q.Kind != "tool":
		case slices.Contains(g.o.Tools.Edits, q.Spec.Tool) && !g.writesDocument(ctx, q):
			act.Needs = flow.Project
		case slices.Contains(g.o.Tools.Commands, q.Spec.Tool):
			arguments := argumentsOf(q)
			command := rawjson.GetString(arguments, "command")
			if command != "" && !isHarmless(command, rawjson.GetString(arguments, "cwd")) {
				act.Needs, act.Sends, act.Reads = flow.Project, true, g.sentFile(ctx, q, command)
			}
		case slices.Contains(g.o.Tools.Fetches, q.Spec.Tool):
			act.Sends = true
		}
		return act
	}
	act := flow.Act{Server: string(q.Spec.Server), Needs: flow.Untrusted, Sends: !g.rows.trusted(q.Spec.Server)}
	if q.Kind != "tool" {
		return act
	}
	act.Known = func(name string) bool {
		return plainName.MatchString(name) || rawjson.Get(q.Spec.Definition, "inputSchema", "properties", name) != nil
	}
	if string(rawjson.Get(q.Spec.Definition, "annotations", "readOnlyHint")) != "true" {
		act.Needs = flow.Trusted
	}
	if string(rawjson.Get(q.Spec.Definition, "annotations", "openWorldHint")) != "false" {
		act.Sends = true
	}
	return act
}

// plainName matches names of arguments that are words. Others are values, unless the tool declares them.
var plainName = regexp.MustCompile(`^[\pL_-]*$`)

// findingText describes to a person what is wrong with a call, for [flow.ReasonLines]. endorsement is how long a yes
// counts.
func findingText(f flow.Finding, endorsement time.Duration) string {
	var lines []string
	add := func(what string, values []flow.Value) {
		for _, v := range values {
			place, from := v.Path, "the model, after it had read text that is not trusted"
			if place == "" {
				place = "all arguments"
			}
			if v.Origin != nil {
				from = v.Origin.String()
			}
			line := fmt.Sprintf("%s (%s, from %s)", place, v.Label, from)
			lines = append(lines, strings.ReplaceAll(line, ";", ",")) // names of sources are foreign: they must not end a line
		}
		lines[len(lines)-len(values)] = what + lines[len(lines)-len(values)]
	}
	if len(f.Values) > 0 {
		add(flow.EndorsesValues+durationText(endorsement)+": ", f.Values)
	}
	if len(f.Secret) > 0 {
		add(flow.SendsPrivate+": ", f.Secret)
	}
	const most = 12
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	return strings.Join(lines, "; ")
}

// durationText returns a duration for people: whole hours in words.
func durationText(d time.Duration) string {
	switch hours := int(d / time.Hour); {
	case d == time.Hour:
		return "1 hour"
	case hours > 0 && d%time.Hour == 0:
		return fmt.Sprintf("%d hours", hours)
	}
	return d.String()
}

// Approved implements [deck.CallObserver]: the person has endorsed the values, or the call.
func (g *FlowGuard) Approved(ctx context.Context, q deck.Question, by string) error {
	judged := g.judged(q.Caller)
	if judged == "off" {
		return nil
	}
	r, err := g.run(ctx, deck.RunOf(q.Caller))
	if err != nil {
		return err
	}
	found, err := g.check(ctx, r, q, judged)
	if err != nil || found.Empty() {
		return err
	}
	var all []store.Endorsement
	for i, v := range slices.Concat(found.Values, found.Secret) {
		e := endorsementOf(q, v.Path, v.Text, i >= len(found.Values))
		e.Shown, e.Label = redactText(v.Text), v.Label.String()
		if v.Origin != nil {
			e.Origin = v.Origin.String()
		}
		all = append(all, e)
	}
	for i := range all {
		all[i].ID, all[i].By = approvalID("", ""), by
	}
	return g.o.Store.AddEndorsements(ctx, g.o.Endorsement, all...)
}

// endorsementOf returns what a person must have endorsed for a value at a place in the arguments. With sends, and for a
// short value such as "5" or "true", the endorsement counts for the same place of the same tool; otherwise wherever the
// value is used.
func endorsementOf(q deck.Question, path, text string, sends bool) store.Endorsement {
	e := store.Endorsement{Principal: q.Caller.Principal, Hash: sha256Hex([]byte(text)), Sends: sends}
	if sends || len(text) < minEndorsed || text == "true" || text == "false" {
		e.Server, e.Tool, e.Place = string(q.Spec.Server), q.Spec.Tool, path
	}
	return e
}

// minEndorsed is the size in bytes of the shortest value whose endorsement counts at every place.
const minEndorsed = 4

// A FlowExplanation is the verdict of a [FlowGuard] on a call, for people.
type FlowExplanation struct {
	Effect string `json:"effect"`
	Why    string `json:"why,omitempty"`
	// Label is the label of the run, and Sources are the sources that explain it.
	Label   string   `json:"label"`
	Sources []string `json:"sources"`
}

// Explain returns the verdict on a call; nil if the run of the caller has read only what is trusted and not private.
func (g *FlowGuard) Explain(q deck.Question) *FlowExplanation {
	label, sources, err := g.LabelOfRun(g.ctx, q.Caller)
	if err == nil && !label.Taints() {
		return nil
	}
	v := g.Decide(g.ctx, q)
	e := &FlowExplanation{Effect: v.Effect.String(), Why: v.Reason, Label: label.String()}
	for _, s := range sources {
		e.Sources = append(e.Sources, s.String()+" ("+s.Label.String()+")")
	}
	return e
}
