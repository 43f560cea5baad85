package deck

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	lru "github.com/hashicorp/golang-lru/v2"
)

// RunOf returns the key of the run to which a call of this caller belongs. For an agent's call, that is the agent's
// run; for other calls, it is the MCP session. For a call without a session, the run is all calls of the same principal
// with the same client in the same directory. Data that several calls share, such as a [ReadTrail], is stored by this
// key.
func RunOf(c drawbridge.Caller) string {
	switch {
	case c.Run != "":
		return "run:" + c.Thread + "/" + c.Run
	case c.Session != "":
		return "session:" + c.Session
	}
	return "caller:" + strings.Join([]string{c.Principal, rawjson.GetString(c.Client, "name"), c.Dir}, "\x00")
}

// ThreadAndRun returns the IDs of the thread and of the run that a call of this caller belongs to in records. Those of
// an agent are its own. Other callers have one of each for a session, see [RunOf], which does not show the session's
// key.
func ThreadAndRun(c drawbridge.Caller) (thread, run string) {
	if c.Run != "" || c.OriginKind() == drawbridge.Agent {
		return c.Thread, c.Run
	}
	sum := sha256.Sum256([]byte(RunOf(c)))
	run = "session-" + hex.EncodeToString(sum[:8])
	return cmp.Or(c.Thread, run), run
}

// A Source is a file, a web page or a result of a server that a run has read.
type Source struct {
	// Kind is "file", "page" or "result", or EntitySource.
	Kind string `json:"kind"`
	// Name is the path of a file or the URL of a page. For a result it is the name or URI that the caller used for the
	// tool, prompt or resource.
	Name string `json:"name"`
	// Server is the server that returned the result; empty for Drawbridge's own tools.
	Server drawbridge.ServerID `json:"server,omitempty"`
	// Digest is the SHA-256 of the content: of the file, of the page, or of the result as the caller got it. Call is
	// the ID of the audit record of the call that read it; empty if it is not known. A source that is read again with
	// the same content stays one source, with the first call.
	Digest Digest `json:"digest,omitzero"`
	Call   string `json:"call,omitempty"`
}

// A FlowTracker follows the labels of the texts that runs read and write. Its methods may be called from several goroutines.
type FlowTracker interface {
	// SourceRead is called each time that a run has read a source. The label is that of an entity; for other sources it
	// is the zero label, and the tracker knows the label itself. title is how people call an entity, after its kind, such as
	// "page Frogs" or "memory colour"; it may be empty.
	SourceRead(run string, s Source, label flow.Label, title string)
	// LabelOf returns the label of a text that the run writes, and the source that explains it.
	LabelOf(run, text string) (flow.Label, flow.Source)
	// FileLabel returns the label of a file that a run would read.
	FileLabel(run, path string) flow.Label
	// PageLabel returns the label that the settings give to a page with one of these names.
	PageLabel(names ...string) flow.Label
}

// EntitySource is the kind of an entity of the workspace. The name of the source is the ID of the entity.
const EntitySource = "entity"

// resultSource is the kind of a result of a server.
const resultSource = "result"

// The limits of a read trail: the number of runs, and the number of sources of one run.
const (
	maxTrailRuns    = 1000
	maxTrailSources = 10_000
)

// maxClientDigest is the size in bytes of the largest result for a client whose digest is computed, since large results
// must stay fast. Results for Drawbridge's own agent and its scripts always have one.
const maxClientDigest = 64 << 10

// A ReadTrail stores the sources that each run has read. If it has maxTrailRuns runs and a new run is added, the least
// recently used run is removed. Its methods may be called from several goroutines. A nil trail stores nothing.
type ReadTrail struct {
	// Tracker is told what runs read; nil follows no labels. It is set before the trail is used.
	Tracker FlowTracker

	mu   sync.Mutex
	runs *lru.Cache[string, *runTrail]
}

type runTrail struct {
	sources sourceList
}

// NewReadTrail returns an empty trail.
func NewReadTrail() *ReadTrail {
	runs, err := lru.New[string, *runTrail](maxTrailRuns)
	if err != nil {
		panic(err) // the size is positive
	}
	return &ReadTrail{runs: runs}
}

// Add adds a source to a run, unless the run already has the source. If the run has maxTrailSources sources, the oldest
// one is removed and counted.
func (t *ReadTrail) Add(run string, s Source) { t.AddLabelled(run, s, flow.Label{}, "") }

// AddLabelled is like Add, for an entity with a label and a title; see [FlowTracker].
func (t *ReadTrail) AddLabelled(run string, s Source, label flow.Label, title string) {
	if t == nil {
		return
	}
	if t.Tracker != nil {
		t.Tracker.SourceRead(run, s, label, title)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.runs.Get(run)
	if !ok {
		r = &runTrail{}
		t.runs.Add(run, r)
	}
	r.sources.add(s)
}

// Sources returns the sources that a run has read, in the order in which they were added. dropped is the number of
// earlier sources that were removed because the run had too many.
func (t *ReadTrail) Sources(run string) (sources []Source, dropped int) {
	t.view(run, func(l *sourceList) { sources, dropped = l.since(0), l.dropped })
	return sources, dropped
}

// SourcesSince returns the sources that were added to a run at a position and after it, and the position after the last
// one. The first position of a run is 0. If the run is not known, it returns 0.
func (t *ReadTrail) SourcesSince(run string, position int) (sources []Source, next int) {
	t.view(run, func(l *sourceList) { sources, next = l.since(position), l.end })
	return sources, next
}

// view calls look with the sources of a run, if the run is known.
func (t *ReadTrail) view(run string, look func(l *sourceList)) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, ok := t.runs.Get(run); ok {
		look(&r.sources)
	}
}

// addResult adds the result of a completed call to the sources of the call's run, if a server returned the result.
func (t *ReadTrail) addResult(s *callState) {
	if t == nil || s.target.spec.Server == "" {
		return
	}
	from := Source{Kind: resultSource, Server: s.target.spec.Server, Call: s.log.ID(),
		Name: cmp.Or(s.target.calledAs, string(s.target.spec.Name))}
	if len(s.result.Raw) <= maxClientDigest || s.call.Caller.OriginKind() != drawbridge.External {
		from.Digest = sha256.Sum256(s.result.Raw)
	}
	t.Add(RunOf(s.call.Caller), from)
}
