package admin

import (
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// A programFinder finds the programs of rows in one look at a configuration.
type programFinder struct {
	environ   []string
	decisions store.RowApprovals
	programs  *config.ProgramCache
}

func (r *Service) newProgramFinder(decisions store.RowApprovals) programFinder {
	return programFinder{r.o.Environ, decisions, &config.ProgramCache{}}
}

// findProgram gives the file that a project's stdio server is about: the one that was approved with the row, as long
// as it is what it was, since that is what is started; else the one that the command means now. It is the zero one
// where there is none. The error is for one that cannot be approved.
func (f programFinder) findProgram(row config.Server) (config.ProgramFile, error) {
	if row.Origin.Kind != config.OriginProject || row.Command == "" {
		return config.ProgramFile{}, nil
	}
	if last, ok := f.decisions.Find(row); ok && last.Hash == row.Hash {
		if p := last.Program(); f.programs.CheckUnchanged(p) == nil {
			return p, nil
		}
	}
	path, _, err := gateway.ResolveProcess(row, config.Settings{}, f.environ)
	if err != nil {
		return config.ProgramFile{}, nil // there is nothing to approve but the row
	}
	p, err := f.programs.Hash(path)
	if isTooLarge(err) {
		return config.ProgramFile{}, err
	}
	return p, nil
}

func isTooLarge(err error) bool {
	_, large := errors.AsType[*config.ProgramTooLargeError](err)
	return large
}

// attachProgram finds the program of a row that was read, where a decision was taken about it that it bears on. What a
// project brings may name any files of the machine, so that nothing is read of a row that nobody decided about: only
// whether a person could.
func (f programFinder) attachProgram(row *config.Server) {
	if row.Phase != drawbridge.Idle && row.Phase != drawbridge.NeedsApproval {
		return
	}
	var err error
	if last, ok := f.decisions.Find(*row); ok && (last.Approved || last.Hash != row.Hash) {
		row.Program, err = f.findProgram(*row)
	} else {
		err = f.checkProgramSize(*row)
	}
	if err != nil {
		row.Phase, row.Reason = drawbridge.Refused, err.Error()
	}
}

// checkProgramSize says why the program of a row cannot be approved, as far as that shows without reading it.
func (f programFinder) checkProgramSize(row config.Server) error {
	if row.Origin.Kind != config.OriginProject || row.Command == "" {
		return nil
	}
	path, _, err := gateway.ResolveProcess(row, config.Settings{}, f.environ)
	if err != nil {
		return nil
	}
	if err := config.CheckProgramSize(path); isTooLarge(err) {
		return err
	}
	return nil
}

// withProgram is a row that somebody is to look at: with its program. One that became too large meanwhile has none.
func (f programFinder) withProgram(row config.Server) config.Server {
	if row.Program == (config.ProgramFile{}) && row.Phase != drawbridge.Refused {
		row.Program, _ = f.findProgram(row)
	}
	return row
}

// isApproved says whether a row was approved as it is, with its program as that is.
func (f programFinder) isApproved(row config.Server) bool {
	last, ok := f.decisions.Find(row)
	if !ok || !last.Approved || last.Hash != row.Hash {
		return false
	}
	p, err := f.findProgram(row)
	return err == nil && last.Program() == p
}

// ProgramLines shows the file that would be started, and what is in it by its digest.
func (e ServerEntry) ProgramLines() []config.NameValue {
	if e.Program == (config.ProgramFile{}) {
		return nil
	}
	return []config.NameValue{{Name: "program", Value: safetext.Exact(e.Program.Path)}, {Name: "program digest",
		Value: "SHA-256 " + e.Program.Digest}}
}
