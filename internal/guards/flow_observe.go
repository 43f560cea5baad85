package guards

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// An observedCall is a call in progress. label is the join of the labels of all that its run reads meanwhile; it is
// guarded by the mutex of the guard.
type observedCall struct {
	read   bool
	label  flow.Label
	source flow.Source // one of those with the lowest label
}

// BeforeSend implements [deck.CallObserver]. It labels the file that the call will write, and returns a function that
// labels the result.
func (g *FlowGuard) BeforeSend(ctx context.Context, q deck.Question) (func(*drawbridge.Result, error) error, error) {
	switch q.Caller.Kind {
	case drawbridge.Agent, drawbridge.External, drawbridge.Sandbox:
	default:
		return nil, nil // a person
	}
	key := deck.RunOf(q.Caller)
	r, err := g.flowRun(ctx, key)
	if err != nil {
		return nil, err
	}
	c := &observedCall{label: flow.Clean}
	dir := ""
	if q.Spec.Server == "" && q.Caller.Dir != "" { // a server reads no files of ours
		dir = realFile(q.Caller.Dir)
	}
	g.mu.Lock()
	r.dir = cmp.Or(dir, r.dir)
	r.calls = append(r.calls, c)
	g.mu.Unlock()
	end := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		r.calls = slices.DeleteFunc(r.calls, func(o *observedCall) bool { return o == c })
	}
	if label := r.Label(); !label.Taints() && q.Spec.Server != "" { // what the model made before it read anything is as good as what it was told
		r.Read(flow.Source{Kind: flow.CallSource, Name: string(q.Spec.Name), Label: label}, argumentsOf(q), nil)
	}
	started := time.Now().Add(-time.Second) // the clock of the file system may be coarse
	if q.Spec.Server == "" && slices.Contains(g.o.Tools.Edits, q.Spec.Tool) {
		if err := g.labelWrittenFile(ctx, r.Run, q); err != nil {
			end()
			return nil, err
		}
	}
	ctx = context.WithoutCancel(ctx) // a cancelled call has a label too
	return func(result *drawbridge.Result, err error) error {
		end()
		if q.Spec.Server == "" {
			return g.afterOwnTool(ctx, key, r, q, c, started, result, err)
		}
		return g.afterServer(ctx, key, r, q, result, err)
	}, nil
}

// labelWrittenFile stores the label of the file that a call will write.
func (g *FlowGuard) labelWrittenFile(ctx context.Context, r *flow.Run, q deck.Question) error {
	arguments := argumentsOf(q)
	path, err := g.o.Context.ResolvePath(q.Caller, rawjson.GetString(arguments, "path"))
	if err != nil {
		return err
	}
	label, origin, name := flow.Clean, flow.Source{}, flow.Clean
	for place, text := range flow.Values(arguments, true) {
		l, from := g.labelOfText(r, text)
		if place == "path" {
			name = l
		}
		if l.Integrity < flow.Project && !isDocument(path) { // a person has read what goes into code
			endorsed, err := g.o.Store.Endorsed(ctx, endorsementOf(q, place, text, false))
			if err != nil {
				return err
			}
			if endorsed {
				l.Integrity = flow.Project
			}
		}
		if joined := label.Join(l); joined != label || origin == (flow.Source{}) {
			label = joined
			if from != nil {
				origin = *from
			}
		}
	}
	if label.Integrity >= flow.Project && label.Confidentiality < flow.Private {
		return nil
	}
	files := []store.FlowFile{{Path: realFile(path), Label: label, Origin: origin}}
	taints := name.Confidentiality == flow.Private || name.Integrity < flow.Project
	// A list of a directory has the names in it.
	for range strings.Split(filepath.ToSlash(rawjson.GetString(arguments, "path")), "/") {
		dir := filepath.Dir(path)
		if taints && !plainFile.MatchString(filepath.Base(path)) {
			files = append(files, store.FlowFile{Path: realFile(dir), Label: name, Origin: origin})
		}
		path = dir
	}
	return g.files.add(ctx, files...)
}

// plainFile matches names of files that are a few words. Others may carry instructions.
var plainFile = regexp.MustCompile(`^(?:[\pL\pN_, -]|\.\d){1,48}(\.\w+)?$`)

// afterServer labels what a server has returned, also an error: its text is the server's.
func (g *FlowGuard) afterServer(ctx context.Context, key string, r *flowRun, q deck.Question, result *drawbridge.Result, err error) error {
	s := flow.Source{Kind: "result", Name: string(q.Spec.Name), Server: string(q.Spec.Server)}
	var text json.RawMessage
	if err != nil {
		if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Raw == nil && f.Code == drawbridge.PolicyBlocked {
			return nil // nothing was sent
		}
		text = errorText(err)
		s.Label = g.rows.Of(q.Spec.Server, q.Spec.Tool, g.examined(q, text))
	} else {
		text = result.Raw
		s.Label = withAnnotations(g.rows.Of(q.Spec.Server, q.Spec.Tool, g.examined(q, text)), text)
	}
	if err == nil && g.o.Annotations && q.Caller.Kind == drawbridge.External {
		result.Raw = annotated(result.Raw, s.Label)
	}
	return g.note(ctx, key, r, q, s, text)
}

// examined returns the text whose signs of a mail count: none for a client whose values are not judged.
func (g *FlowGuard) examined(q deck.Question, text json.RawMessage) json.RawMessage {
	if g.judged(q.Caller) == "all" {
		return text[:min(len(text), maxForeignText)]
	}
	return nil
}

// note joins the label of a source, notes its text, and stores the label of the run if it has changed. Values of
// clients are judged only for private text, so the texts that they read are not needed.
func (g *FlowGuard) note(ctx context.Context, key string, r *flowRun, q deck.Question, s flow.Source, text json.RawMessage) error {
	r.Join(s)
	if g.judged(q.Caller) == "all" {
		r.Read(s, text, argumentsOf(q))
	}
	return g.saveChanged(ctx, key, r, q.Caller)
}

// saveChanged stores the label of a run, unless it is stored. For a client whose values are not judged, only private text
// counts.
func (g *FlowGuard) saveChanged(ctx context.Context, key string, r *flowRun, caller drawbridge.Caller) error {
	label := r.Label()
	if caller.OriginKind() == drawbridge.External && g.judged(caller) != "all" && label.Confidentiality < flow.Private {
		return nil
	}
	g.mu.Lock()
	saved := r.saved
	g.mu.Unlock()
	if label == saved || !label.Taints() {
		return nil
	}
	if err := g.save(ctx, key, r.Run); err != nil {
		return err
	}
	g.mu.Lock()
	r.saved = label
	g.mu.Unlock()
	return nil
}

// afterOwnTool labels what one of Drawbridge's own tools has returned: the join of the sources that it has read, or
// without sources the label of the run.
func (g *FlowGuard) afterOwnTool(ctx context.Context, key string, r *flowRun, q deck.Question, c *observedCall, started time.Time,
	result *drawbridge.Result, err error) error {
	g.mu.Lock()
	label, read, source := c.label, c.read, c.source
	g.mu.Unlock()
	s := flow.Source{Kind: "tool", Name: string(q.Spec.Name)}
	if read {
		s = source
	}
	switch tool := q.Spec.Tool; {
	case slices.Contains(g.o.Tools.Commands, tool):
		var failed error
		if s, failed = g.afterCommand(ctx, r, q, started, result); failed != nil {
			return failed
		}
	case slices.Contains(g.o.Tools.Exports, tool):
		s.Label = label
		dir, failed := g.o.Context.ResolvePath(q.Caller, rawjson.GetString(argumentsOf(q), "path"))
		if failed == nil {
			failed = g.labelChangedFiles(ctx, dir, started, s)
		}
		if failed != nil {
			return failed
		}
	case slices.Contains(g.o.Tools.Fetches, tool):
		s.Label = flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Internal}
	case slices.Contains(g.o.Tools.Files, tool):
		s.Label = label.Join(flow.Label{Integrity: flow.Project, Confidentiality: flow.Internal})
	case read:
		s.Label = label
	default:
		s.Label = r.Label()
	}
	text := rawjson.Get(result.Raw, "content")
	if err != nil {
		text = errorText(err)
	}
	return g.note(ctx, key, r, q, s, text)
}

// labelChangedFiles stores the label of the files that a command has changed: those in a directory, and others.
func (g *FlowGuard) labelChangedFiles(ctx context.Context, dir string, since time.Time, s flow.Source,
	others ...string) error {
	if dir == "" || s.Label.Integrity >= flow.Project && s.Label.Confidentiality < flow.Private {
		return nil
	}
	var files []store.FlowFile
	for _, path := range append(changedFiles(dir, since), others...) {
		files = append(files, store.FlowFile{Path: realFile(path), Label: s.Label, Origin: s})
	}
	return g.files.add(ctx, files...)
}

// SourceRead implements [deck.FlowTracker].
func (g *FlowGuard) SourceRead(run string, source deck.Source, label flow.Label, title string) {
	if source.Kind == "result" {
		return // labelled by its call
	}
	ctx := g.ctx
	r, err := g.flowRun(ctx, run)
	if err != nil {
		return // the next call of the run is refused
	}
	s := flow.Source{Kind: source.Kind, Name: source.Name, Label: label}
	switch source.Kind {
	case deck.EntitySource:
		kind, name, _ := strings.Cut(title, " ")
		s.Kind, s.Name = cmp.Or(kind, "page"), cmp.Or(name, source.Name)
	case "file":
		s = g.fileSource(ctx, g.dirOf(r), source.Name)
	case "page":
		s.Kind, s.Label = "web page", flow.Label{Integrity: flow.Untrusted}
	}
	g.mu.Lock()
	for _, c := range r.calls {
		if joined := c.label.Join(s.Label); joined != c.label || !c.read {
			c.label, c.source = joined, s
		}
		c.read = true
	}
	g.mu.Unlock()
	r.Join(s)
}

// dirOf returns the directory of the caller of a run.
func (g *FlowGuard) dirOf(r *flowRun) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return r.dir
}

// FileLabel implements [deck.FlowTracker].
func (g *FlowGuard) FileLabel(run, path string) flow.Label {
	r, err := g.flowRun(g.ctx, run)
	if err != nil {
		return flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Private}
	}
	return g.fileSource(g.ctx, g.dirOf(r), path).Label
}

// LabelOf implements [deck.FlowTracker].
func (g *FlowGuard) LabelOf(run, text string) (flow.Label, flow.Source) {
	r, err := g.run(g.ctx, run)
	if err != nil {
		return flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Private}, flow.Source{}
	}
	label, origin := g.labelOfText(r, text)
	if origin == nil {
		return label, flow.Source{}
	}
	return label, *origin
}

// labelOfText is like [flow.Run.LabelOf], for a text that is written: what stands in a description is not trusted.
func (g *FlowGuard) labelOfText(r *flow.Run, text string) (flow.Label, *flow.Source) {
	label, origin := r.LabelOf(text)
	if label.Integrity > flow.Untrusted && r.Made(text) {
		if s := g.described(&deck.Question{}, text); s != nil {
			return label.Join(s.Label), s
		}
	}
	return label, origin
}

// errorText returns the text of an error as JSON.
func errorText(err error) json.RawMessage { return rawjson.Quote(err.Error()) }

// Attached notes that the person has given a file or another text to the run of a caller. name is a path or a URI.
func (g *FlowGuard) Attached(ctx context.Context, caller drawbridge.Caller, name string) error {
	key := deck.RunOf(caller)
	r, err := g.flowRun(ctx, key)
	if err != nil {
		return err
	}
	s := flow.Source{Kind: "attachment", Name: name, Label: flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Internal}}
	if filepath.IsAbs(name) {
		s = g.fileSource(ctx, realFile(caller.Dir), name)
	}
	r.Join(s)
	return g.saveChanged(ctx, key, r, caller)
}
