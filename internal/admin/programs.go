package admin

import (
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// A programFinder finds the program files that the rows of a configuration start. Approvals of project rows include the
// hash of this file. The programFinder hashes each file only once.
type programFinder struct {
	environ   []string
	decisions store.RowApprovals
	programs  *config.ProgramCache
}

func (r *Service) newProgramFinder(decisions store.RowApprovals) programFinder {
	return programFinder{r.o.Environ, decisions, &config.ProgramCache{}}
}

// findProgram returns the program file of a project's stdio server, with its hash. If the file that the person approved
// is unchanged, it returns that file, because Drawbridge would start it. Otherwise it returns the file that the command
// of the row now resolves to, or the zero value if there is none. For any other row it returns the zero value. The
// error reports a file that is too large to be approved.
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

// attachProgram sets the program of a row on which a person has decided, so that a changed program is noticed. A row of
// a project may name any file of the machine. So for a row without a decision it does not read the program, and checks
// only its size. If the program is too large, the row gets the phase Refused.
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

// withProgram returns a row with its program set, so that a person can examine it before a decision. If the program
// cannot be found or is too large, it is not set.
func (f programFinder) withProgram(row config.Server) config.Server {
	if row.Program == (config.ProgramFile{}) && row.Phase != drawbridge.Refused {
		row.Program, _ = f.findProgram(row)
	}
	return row
}

// isApproved reports whether a person approved the row, and neither the row nor its program has changed since.
func (f programFinder) isApproved(row config.Server) bool {
	last, ok := f.decisions.Find(row)
	if !ok || !last.Approved || last.Hash != row.Hash {
		return false
	}
	p, err := f.findProgram(row)
	return err == nil && last.Program() == p
}

// ProgramLines returns lines for a person with the path and the SHA-256 of e.Program; nil if it is not set.
func (e ServerEntry) ProgramLines() []config.NameValue {
	if e.Program == (config.ProgramFile{}) {
		return nil
	}
	return []config.NameValue{{Name: "program", Value: safetext.Exact(e.Program.Path)}, {Name: "program digest",
		Value: "SHA-256 " + e.Program.Digest}}
}
