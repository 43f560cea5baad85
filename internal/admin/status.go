package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// InForce returns the rows in the list that are not shadowed. A shadowed row is not used, because another row with the
// same name takes precedence.
func (l ListResult) InForce() (rows []config.Server) {
	for _, e := range l.Entries {
		if !e.Shadowed {
			rows = append(rows, e.Server)
		}
	}
	return rows
}

// ServerStatuses returns the last known status of each configured server, from the configuration and the store. It does
// not start servers. The statuses are in the order of the returned list, which is that of ListServers. If all is set,
// both include disabled and shadowed rows.
func (r *Service) ServerStatuses(ctx context.Context, all bool) ([]drawbridge.ServerStatus, ListResult, error) {
	list, err := r.ListServers(ctx, all)
	if err != nil {
		return nil, list, err
	}
	stored, err := r.readStoredState(ctx, config.Configuration{Settings: list.Settings, Servers: list.InForce()})
	if err != nil {
		return nil, list, err
	}
	rows := make([]drawbridge.ServerStatus, 0, len(list.Entries))
	for _, e := range list.Entries {
		var m store.MountRecord
		if !e.Shadowed {
			m = stored.mounts[e.Server.Hash]
		}
		row := r.serverStatus(list.Settings, list.InForce(), e.Server, m)
		if problem := r.startProblem(e.Server, list.Settings); problem != "" && row.Phase == drawbridge.Idle {
			row.Phase, row.Fault = drawbridge.Faulted, problem
		}
		if e.Shadowed {
			row.Phase, row.Reason = e.Phase, e.Reason
		} else if e.Server.Phase == drawbridge.Idle {
			row = row.WithTrust(trustOfServer(stored.trust, e.Server))
		}
		if scan := stored.scans[e.Server.ID]; !e.Shadowed {
			row.Flagged, row.Unscanned = scan.FlaggedTimes(), scan.Skipped
		}
		rows = append(rows, row)
	}
	return rows, list, nil
}

// startProblem returns the reason why a server's program cannot be started, if the program is not installed. It does
// not start the program. It returns "" if the program was found, and if only a start can show whether it works.
func (r *Service) startProblem(row config.Server, settings config.Settings) string {
	if row.Command == "" || row.Phase != drawbridge.Idle || row.DeferredParts("env PATH") != nil {
		return ""
	}
	_, _, err := gateway.ResolveProcess(row, settings, r.o.Environ)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return ""
	case row.CommandLineProblem() != "":
		return row.CommandLineProblem()
	}
	return strings.TrimSuffix(err.Error(), ": "+fs.ErrNotExist.Error()) + " (install it, or configure its full path)"
}

// A storedState contains the data about servers in the store. The zero value is used if there is no store.
type storedState struct {
	mounts map[string]store.MountRecord
	trust  *gateway.TrustRecords
	scans  map[drawbridge.ServerID]store.ResultScan
}

// readStoredState reads the data about the servers of set from the store.
func (r *Service) readStoredState(ctx context.Context, set config.Configuration) (s storedState, err error) {
	db, err := r.openStore(ctx, set, false)
	if err != nil || db == nil {
		return s, err
	}
	defer db.Close()
	if s.trust, err = gateway.ReadTrustRecords(ctx, db, set.Settings); err != nil {
		return s, err
	}
	if s.scans, err = db.ResultScans(ctx); err != nil {
		return s, err
	}
	s.mounts, err = db.MountsOf(ctx, config.ServerHashes(set.Servers))
	return s, err
}

// serverStatus returns the status of the server of the row s. m is the stored data about this row: the last status that
// a process recorded, and the last listing. If the process does not exist any more, its status is corrected; see
// phaseAfterExit. settings and inForce are the settings and the used rows of the configuration.
func (r *Service) serverStatus(settings config.Settings, inForce []config.Server, s config.Server,
	m store.MountRecord) drawbridge.ServerStatus {
	row := drawbridge.ServerStatus{Server: s.ID, Phase: s.Phase, Transport: s.Transport(),
		Era: drawbridge.ProtocolEra(0).String()}
	if m.Status != nil {
		row = *m.Status
		if !processExists(m.Owner) {
			row.Phase, row.SignIn = phaseAfterExit(row), "" // the sign-in has ended with its process
		}
	}
	if m.Listing != nil {
		row.Era, row.Listed = m.Listing.Era.String(), m.Listing.ListedAt
		row.Cards, row.Prompts = len(m.Listing.Tools), len(m.Listing.Prompts)
		row.Resources, row.Templates = len(m.Listing.Resources), len(m.Listing.Templates)
	}
	var vetted gateway.VettedRecord
	if json.Unmarshal(m.Vetted, &vetted) == nil { // without a vetted listing, m.Vetted is not valid JSON
		naming := cmp.Or(r.o.Gateway.Naming, deck.NamingStyle(settings.Naming))
		row.Cards, row.Notes = vetted.Cards, append(row.Notes, vetted.NotesIn(naming, func(id drawbridge.ServerID) bool {
			return slices.ContainsFunc(inForce, func(other config.Server) bool {
				return other.ID == id && other.Phase == drawbridge.Idle
			})
		})...)
	}
	if s.Phase != drawbridge.Idle {
		row.Phase, row.Reason = s.Phase, s.Reason
	}
	row.Source = s.Origin.String()
	return row
}

// phaseAfterExit returns the phase of a server after the process that ran it has ended. last is the status that the
// process recorded. A required sign-in and a fault remain, because the next start would need or show them again; every
// other phase becomes Idle.
func phaseAfterExit(last drawbridge.ServerStatus) drawbridge.ServerPhase {
	if last.Phase == drawbridge.NeedsSignIn {
		return last.Phase
	}
	if last.Phase == drawbridge.Faulted || last.Phase == drawbridge.Connecting && last.Fault != "" {
		return drawbridge.Faulted
	}
	return drawbridge.Idle
}

// recordAction calls do, which is a person's action, and records the action in the audit as act. The error is that of
// do or of the audit.
func (r *Service) recordAction(act gateway.AdminAction, do func() error) error {
	return r.o.AdminRecorder.Run(act, do)
}

// closeStore closes db, if it is not nil. It returns err joined with the error of closing.
func closeStore(db *store.DB, err error) error {
	if db == nil {
		return err
	}
	return errors.Join(err, db.Close())
}
