package roster

import (
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/store"
)

// program gives the file that a project's stdio server is about: the one that was approved with the row, as long as it is what
// it was, since that is what is started; else the one that the command means now. It is the zero one where there is none.
func (r *Roster) program(row config.Server, decisions store.Approvals) config.Program {
	if row.Origin.Kind != config.Project || row.Command == "" {
		return config.Program{}
	}
	if last, ok := decisions.Of(row); ok && last.Hash == row.Hash {
		if p := last.Program(); p.Check() == nil {
			return p
		}
	}
	p, err := gateway.Program(row, r.o.Environ)
	if err != nil {
		return config.Program{} // there is nothing to approve but the row
	}
	return p
}

// allows says whether a row was approved as it is, with its program as that is.
func (r *Roster) allows(row config.Server, decisions store.Approvals) bool {
	last, ok := decisions.Of(row)
	return ok && last.Approved && last.Hash == row.Hash && last.Program() == r.program(row, decisions)
}

// Runs shows the file that would be started, and what is in it by its digest.
func (e Entry) Runs() []config.Pair {
	if e.Program == (config.Program{}) {
		return nil
	}
	return []config.Pair{{Name: "program", Value: printable(e.Program.Path)}, {Name: "program digest", Value: "SHA-256 " + e.Program.Digest}}
}
