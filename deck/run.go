package deck

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	lru "github.com/hashicorp/golang-lru/v2"
)

// RunOf returns the run that a call belongs to: that of an agent, or else the MCP session, or else everything that the
// same principal does with the same client in the same directory. State that outlives a call is kept by run.
func RunOf(c drawbridge.Caller) string {
	switch {
	case c.Run != "":
		return "run:" + c.Thread + "/" + c.Run
	case c.Session != "":
		return "session:" + c.Session
	}
	return "caller:" + strings.Join([]string{c.Principal, rawjson.GetString(c.Client, "name"), c.Dir}, "\x00")
}

// A Source is a thing that a run has read.
type Source struct {
	// Kind is "file", "page" or "result".
	Kind string `json:"kind"`
	// Name is the path of a file, the URL of a page, or the public name of the tool, prompt or resource that answered.
	Name string `json:"name"`
	// Server is the server that answered; empty for Drawbridge's own tools.
	Server drawbridge.ServerID `json:"server,omitempty"`
}

// These bound a read trail: the runs that are kept, and the sources of one run.
const (
	maxTrailRuns    = 1000
	maxTrailSources = 10_000
)

// A ReadTrail keeps what each run has read. Past its bound the run that read nothing for the longest time is forgotten.
// Its methods may be called from several goroutines; those of a nil trail keep nothing.
type ReadTrail struct {
	mu   sync.Mutex
	runs *lru.Cache[string, *runTrail]
}

type runTrail struct {
	sources []Source
	known   map[Source]bool
	dropped int
}

// NewReadTrail returns an empty trail.
func NewReadTrail() *ReadTrail {
	runs, err := lru.New[string, *runTrail](maxTrailRuns)
	if err != nil {
		panic(err) // the size is positive
	}
	return &ReadTrail{runs: runs}
}

// Add adds a source to a run, unless the run has it.
func (t *ReadTrail) Add(run string, s Source) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.runs.Get(run)
	if !ok {
		r = &runTrail{known: map[Source]bool{}}
		t.runs.Add(run, r)
	}
	switch {
	case r.known[s]:
	case len(r.sources) == maxTrailSources:
		r.dropped++
	default:
		r.known[s] = true
		r.sources = append(r.sources, s)
	}
}

// Sources returns what a run has read, in order, and the number of sources that were not kept.
func (t *ReadTrail) Sources(run string) (sources []Source, dropped int) {
	if t == nil {
		return nil, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.runs.Get(run)
	if !ok {
		return nil, 0
	}
	return slices.Clone(r.sources), r.dropped
}

// addResult adds a result that a run received.
func (t *ReadTrail) addResult(s *callState) {
	if t != nil && s.target.spec.Server != "" {
		t.Add(RunOf(s.call.Caller), Source{
			Kind: "result", Server: s.target.spec.Server,
			Name: cmp.Or(s.target.calledAs, string(s.target.spec.Name)),
		})
	}
}
