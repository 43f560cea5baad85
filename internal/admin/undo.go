package admin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/undo"
)

// An UndoResult describes a planned or completed undo of one run. A run is a sequence of calls of one client, for
// example one session. Steps has one step for each file that the run changed.
type UndoResult struct {
	Run   undo.Run    `json:"run"`
	Steps []undo.Step `json:"steps"`
	// Others are the calls of the same client since the first change of the run whose effects are not undone: commands
	// and calls of servers.
	Others []OtherCalls `json:"others,omitempty"`
	// Done is true if the undo was completed without an error; it is false in a plan.
	Done bool `json:"done"`
}

// OtherCalls is the number of calls of one tool whose effects are not undone.
type OtherCalls struct {
	Tool   string `json:"tool"`
	Server string `json:"server,omitempty"`
	Count  int    `json:"count"`
}

// errNoUndo is the error if the store is in memory only: then the earlier contents of changed files are not stored.
const errNoUndo = UserError("there is nothing to undo: a store in memory keeps no record of earlier changes")

// openUndoLog opens the log with the earlier contents of the files that Drawbridge's tools changed. It belongs to the
// configured store.
func (r *Service) openUndoLog(ctx context.Context) (*undo.Log, error) {
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return nil, err
	}
	log, err := gateway.OpenUndoLog(r.o.Store, roll.Settings, r.o.ConfigOptions.LookupEnv)
	if err == nil && log == nil {
		err = errNoUndo
	}
	return log, err
}

// UndoRuns returns the runs that changed files and whose changes are still stored, the newest first.
func (r *Service) UndoRuns(ctx context.Context) ([]undo.Run, error) {
	log, err := r.openUndoLog(ctx)
	if err != nil {
		return nil, err
	}
	return log.Runs()
}

// PlanUndo returns the steps that an undo of a run would take, without changing files. id is the ID of the run or the
// beginning of it; empty means the newest run. The error is a UserError for an unknown run.
func (r *Service) PlanUndo(ctx context.Context, id string) (UndoResult, error) {
	log, err := r.openUndoLog(ctx)
	if err != nil {
		return UndoResult{}, err
	}
	run, err := log.Find(id)
	if errors.Is(err, undo.ErrUnknownRun) && id == "" {
		return UndoResult{}, UserError("no tool of Drawbridge changed a file yet")
	}
	if err != nil {
		return UndoResult{}, userErrorf("undo run %q: %v (drawbridge undo --list shows the runs)", id, err)
	}
	others, err := r.otherCalls(ctx, run)
	return UndoResult{Run: run, Steps: log.Plan(run), Others: others}, err
}

// maxOverlap is how long before the first change of a run otherCalls searches for calls that were still running at that
// change.
const maxOverlap = 10 * time.Minute

// otherCalls returns the calls of a run's client whose effects an undo of the run does not revert, counted by tool. If
// there is no audit, it returns none.
func (r *Service) otherCalls(ctx context.Context, run undo.Run) (all []OtherCalls, err error) {
	records, err := r.OpenAudit(ctx)
	if _, ok := errors.AsType[*NoStoreError](err); ok {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	calls, err := records.Calls(ctx, AuditQuery{Caller: run.Caller, Since: run.First.Add(-maxOverlap)})
	for _, c := range calls {
		mine := c.Caller.Principal == run.Caller && strings.HasPrefix(c.Caller.Client, run.Client) &&
			(isOpenCall(c) || !c.At.Add(c.Duration).Before(run.First))
		if !mine || c.Method != mcp.MethodToolsCall || c.Outcome == audit.Refused || c.Server == "" && !executes(c.Card) {
			continue
		}
		i := slices.IndexFunc(all, func(o OtherCalls) bool { return o.Tool == c.Card })
		if i < 0 {
			i, all = len(all), append(all, OtherCalls{Tool: c.Card, Server: c.Server})
		}
		all[i].Count++
	}
	return all, err
}

// executes reports whether a tool of Drawbridge executes commands.
func executes(card string) bool { return card == "bash" || card == "process" || card == "bg-process" }

// Undo restores the files of the run in plan, which PlanUndo returned. It returns the plan with the steps that were
// taken. The action is recorded in the audit.
func (r *Service) Undo(ctx context.Context, plan UndoResult) (UndoResult, error) {
	log, err := r.openUndoLog(ctx)
	if err != nil {
		return plan, err
	}
	err = r.recordAction(gateway.AdminAction{Command: "undo", Subject: plan.Run.ID}, func() error {
		plan.Steps, err = log.Undo(plan.Run, undo.Change{Run: "undo:" + ulid.Make().String(), Tool: "undo",
			Caller: plan.Run.Caller, Client: "drawbridge undo"})
		return err
	})
	plan.Done = err == nil
	return plan, err
}
