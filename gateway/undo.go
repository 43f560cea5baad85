package gateway

import (
	"cmp"
	"path/filepath"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/oklog/ulid/v2"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/undo"
)

// undoSuffix is the end of the name of the directory that stores earlier contents of files.
const undoSuffix = "-undo"

// OpenUndoLog returns the undo log that belongs to a store; nil for a store in memory. The undo log stores the earlier
// contents of files that tools changed. The arguments are those of StoreLocation.
func OpenUndoLog(flag string, s config.Settings, lookup func(string) (string, bool)) (*undo.Log, error) {
	p, err := placeOfStore(flag, s, lookup)
	switch {
	case err != nil || p.idFile == "":
		return nil, err
	case isFileStore(p.location):
		return undo.Open(p.location+undoSuffix, 0), nil
	}
	return undo.Open(filepath.Join(p.stateDir, "files"+undoSuffix), 0), nil
}

// An undoLog stores the changes that tools make to files in an undo.Log, with the sources that their runs had read.
type undoLog struct {
	log   *undo.Log
	trail *deck.ReadTrail

	// mu guards stored.
	mu sync.Mutex
	// stored has for each run the position in the trail up to which its sources are stored.
	stored *lru.Cache[string, int]
}

var _ cards.UndoLog = (*undoLog)(nil)

// maxStoredRuns is the number of runs in undoLog.stored. Of a run that is not there any more, all sources are stored
// again.
const maxStoredRuns = 1000

func newUndoLog(log *undo.Log, trail *deck.ReadTrail) *undoLog {
	stored, err := lru.New[string, int](maxStoredRuns)
	if err != nil {
		panic(err) // the size is positive
	}
	return &undoLog{log: log, trail: trail, stored: stored}
}

// newSources returns what a run has read since the last call for the run.
func (u *undoLog) newSources(run string) []deck.Source {
	u.mu.Lock()
	defer u.mu.Unlock()
	from, _ := u.stored.Get(run)
	sources, next := u.trail.SourcesSince(run, from)
	if next < from { // the trail has forgotten the run, and begun again
		sources, next = u.trail.SourcesSince(run, 0)
	}
	u.stored.Add(run, next)
	return sources
}

// Before implements [cards.UndoLog]: it stores the content of a file before a change. Changes are undone by run. Each
// call from the command line is a separate run, so that a person can undo the last command only.
func (u *undoLog) Before(c cards.FileChange) (done func(after []byte) error, err error) {
	var sources []deck.Source
	if c.Caller.Kind == drawbridge.Author {
		c.Run = "call:" + ulid.Make().String()
	} else {
		sources = u.newSources(c.Run)
	}
	thread, run := deck.ThreadAndRun(c.Caller)
	client := cmp.Or(rawjson.GetString(c.Caller.Client, "name"), c.Caller.Kind.String())
	return u.log.Before(undo.Change{Run: c.Run, Tool: c.Tool, Path: c.Path, Caller: c.Caller.Principal, Client: client,
		Dir: c.Caller.Dir, Call: c.Call, Kind: c.Caller.Kind.String(), Thread: thread, RunName: run, Sources: sources})
}
