package cards

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// A SavedRun is a run of a script that can be resumed.
type SavedRun struct {
	// ID is the name that people use for the run.
	ID string
	// Owner is a hash of the caller, who alone can resume the run. Call is a hash of Input.
	Owner, Call string
	// Input are the arguments of run_python.
	Input json.RawMessage
}

// A RunStore keeps the runs of scripts that wait for a person, so that they can be resumed after their process ended.
type RunStore interface {
	// New returns the journal of a new run. Nothing is stored before its first Append.
	New(run SavedRun) RunJournal
	// Resume takes an interrupted run for this process alone: the one of run.Owner with run.ID, or, if the ID is empty,
	// the last one with run.Call. It waits until the process that ran it is known to have ended. It returns the run, its
	// journal and the entries of the journal.
	Resume(ctx context.Context, run SavedRun) (SavedRun, RunJournal, [][]byte, error)
	// Interrupted returns the IDs of the runs of the owner that can be resumed.
	Interrupted(ctx context.Context, owner string) ([]string, error)
}

// A RunJournal is the journal of a run in a [RunStore].
type RunJournal interface {
	sandbox.Journal
	// Close ends the use of the journal. ended reports that the run has ended: then it is deleted. Otherwise it can be
	// resumed for some time.
	Close(ctx context.Context, ended bool) error
}

// runIDPattern is what an ID that a caller chose must match.
var runIDPattern = lazyregexp.New(`^[a-z0-9]{8,32}$`)

// NewRunID returns the ID of a new run.
func NewRunID() string { return strings.ToLower(rand.Text()[:10]) }

// runOwner returns a hash of the rights and the private data with which a script runs, as scriptOwner does, but the same
// in another session.
func runOwner(c drawbridge.Caller) string {
	c.Session = ""
	return sha256Hex([]byte(scriptOwner(c)))
}

func sha256Hex(b []byte) string {
	digest := sha256.Sum256(b)
	return hex.EncodeToString(digest[:])
}

// openRun returns the journal of the run that a call starts or resumes, with the input of the run, and the entries of a
// run that is resumed.
func openRun(ctx context.Context, runs RunStore, call drawbridge.Call, in runPythonInput) (input runPythonInput,
	run SavedRun, journal RunJournal, entries [][]byte, err error) {
	arguments := deck.ArgumentsInText(rawjson.Get(call.Params, "arguments"))
	run = SavedRun{Owner: runOwner(call.Caller), Call: sha256Hex(arguments), Input: arguments}
	resume := rawjson.Get(call.Params, "_meta", mcp.MetaResume)
	if resume == nil {
		if run.ID = rawjson.GetString(call.Params, "_meta", mcp.MetaRun); !runIDPattern().MatchString(run.ID) {
			run.ID = NewRunID()
		}
		return in, run, runs.New(run), nil, in.check()
	}
	run.ID, _ = rawjson.DecodeString(resume)
	run, journal, entries, err = runs.Resume(ctx, run)
	if err != nil {
		return in, run, nil, nil, resumeFault(ctx, runs, run, err)
	}
	if err = json.Unmarshal(run.Input, &input); err != nil {
		return in, run, journal, nil, errors.New("the stored run cannot be read")
	}
	return input, run, journal, entries, nil
}

// resumeFault returns the fault for a run that cannot be resumed.
func resumeFault(ctx context.Context, runs RunStore, run SavedRun, err error) error {
	fault := &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.NotFound, Step: "resume the script"}
	f, ok := errors.AsType[*drawbridge.Fault](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case ok && f.Code == drawbridge.Transient:
		fault.Code, fault.Err = drawbridge.Transient, errors.New("the process that runs it has not ended")
	case ok && f.Code == drawbridge.NotFound && run.ID == "":
		fault.Code, fault.Ambiguous = drawbridge.Transient, true
		fault.Err = errors.New("the hub ended before the response, and the script may have taken effect")
		fault.Next = "check the result before you call again"
	case ok && f.Code == drawbridge.NotFound:
		fault.Err = fmt.Errorf("no interrupted run %s is stored: it did not wait for an approval, or has ended", run.ID)
		if ids, err := runs.Interrupted(ctx, run.Owner); err == nil && len(ids) > 0 {
			fault.Next = "runs that can be resumed: " + strings.Join(slices.Compact(ids), ", ")
		}
	default:
		fault.Code, fault.Err = drawbridge.ServerError, errors.New("the stored run cannot be read")
	}
	return fault
}
