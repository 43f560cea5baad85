package admin

import (
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// A programFinder finds the programs of a configuration's rows. It hashes each file only once.
type programFinder struct {
	environ   []string
	decisions store.RowApprovals
	programs  *config.ProgramCache
}

func (r *Service) newProgramFinder(decisions store.RowApprovals) programFinder {
	return programFinder{r.o.Environ, decisions, &config.ProgramCache{}}
}

// findProgram returns the program of a project's stdio server. If the approved program is unchanged, it returns that
// program, because it is the program that would be started. Otherwise it returns the file that the command resolves to
// now, or the zero value if there is none. The error is for a file that is too large to be approved.
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
		return config.ProgramFile{}, nil // only the row itself can be approved
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

// attachProgram sets the program of a row if a decision on the row depends on the program. A project's row may name any
// file of the machine. So for a row without a decision it reads no file and checks only the size.
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

// checkProgramSize returns an error if the program of a row is too large to be approved. It does not read the file.
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

// withProgram returns a row with its program, for a person to examine. It omits a program that has become too large.
func (f programFinder) withProgram(row config.Server) config.Server {
	if row.Program == (config.ProgramFile{}) && row.Phase != drawbridge.Refused {
		row.Program, _ = f.findProgram(row)
	}
	return row
}

// isApproved reports whether the row in its present form was approved and its program is unchanged.
func (f programFinder) isApproved(row config.Server) bool {
	last, ok := f.decisions.Find(row)
	if !ok || !last.Approved || last.Hash != row.Hash {
		return false
	}
	p, err := f.findProgram(row)
	return err == nil && last.Program() == p
}

// ProgramLines returns lines with the path and the digest of the file that would be started.
func (e ServerEntry) ProgramLines() []config.NameValue {
	if e.Program == (config.ProgramFile{}) {
		return nil
	}
	return []config.NameValue{{Name: "program", Value: safetext.Exact(e.Program.Path)}, {Name: "program digest",
		Value: "SHA-256 " + e.Program.Digest}}
}
