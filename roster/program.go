package roster

import (
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/store"
)

// A finder finds the programs of rows in one look at a configuration.
type finder struct {
	environ   []string
	decisions store.Approvals
	programs  *config.Programs
}

func (r *Roster) finder(decisions store.Approvals) finder {
	return finder{r.o.Environ, decisions, &config.Programs{}}
}

// program gives the file that a project's stdio server is about: the one that was approved with the row, as long as it is what
// it was, since that is what is started; else the one that the command means now. It is the zero one where there is none. The
// error is for one that cannot be approved.
func (f finder) program(row config.Server) (config.Program, error) {
	if row.Origin.Kind != config.Project || row.Command == "" {
		return config.Program{}, nil
	}
	if last, ok := f.decisions.Of(row); ok && last.Hash == row.Hash {
		if p := last.Program(); f.programs.Check(p) == nil {
			return p, nil
		}
	}
	path, _, err := gateway.Child(row, config.Settings{}, f.environ)
	if err != nil {
		return config.Program{}, nil // there is nothing to approve but the row
	}
	p, err := f.programs.At(path)
	if tooLarge(err) {
		return config.Program{}, err
	}
	return p, nil
}

func tooLarge(err error) bool {
	_, large := errors.AsType[*config.TooLargeProgram](err)
	return large
}

// settled finds the program of a row that was read, where a decision was taken about it that it bears on. What a project brings
// may name any files of the machine, so that nothing is read of a row that nobody decided about: only whether a person could.
func (f finder) settled(row *config.Server) {
	if row.Phase != drawbridge.Idle && row.Phase != drawbridge.NeedsApproval {
		return
	}
	var err error
	if last, ok := f.decisions.Of(*row); ok && (last.Approved || last.Hash != row.Hash) {
		row.Program, err = f.program(*row)
	} else {
		err = f.fits(*row)
	}
	if err != nil {
		row.Phase, row.Reason = drawbridge.Refused, err.Error()
	}
}

// fits says why the program of a row cannot be approved, as far as that shows without reading it.
func (f finder) fits(row config.Server) error {
	if row.Origin.Kind != config.Project || row.Command == "" {
		return nil
	}
	path, _, err := gateway.Child(row, config.Settings{}, f.environ)
	if err != nil {
		return nil
	}
	if err := config.ProgramFits(path); tooLarge(err) {
		return err
	}
	return nil
}

// shown is a row that somebody is to look at: with its program. One that became too large meanwhile has none.
func (f finder) shown(row config.Server) config.Server {
	if row.Program == (config.Program{}) && row.Phase != drawbridge.Refused {
		row.Program, _ = f.program(row)
	}
	return row
}

// allows says whether a row was approved as it is, with its program as that is.
func (f finder) allows(row config.Server) bool {
	last, ok := f.decisions.Of(row)
	if !ok || !last.Approved || last.Hash != row.Hash {
		return false
	}
	p, err := f.program(row)
	return err == nil && last.Program() == p
}

// Runs shows the file that would be started, and what is in it by its digest.
func (e Entry) Runs() []config.Pair {
	if e.Program == (config.Program{}) {
		return nil
	}
	return []config.Pair{{Name: "program", Value: safetext.Exact(e.Program.Path)}, {Name: "program digest", Value: "SHA-256 " + e.Program.Digest}}
}
