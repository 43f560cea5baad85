package admin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// A NoStoreError reports that no process has created the store yet.
type NoStoreError struct {
	// Location is the path of the file that would hold it.
	Location string
}

// Error returns a sentence that names the location and the command that creates a store.
func (e *NoStoreError) Error() string {
	return fmt.Sprintf("no store exists at %s yet (drawbridge serve creates it; --store names another)", e.Location)
}

// StoreArgument checks a store location as a person wrote it and returns it for the arguments of another program: a
// relative path is joined to dir. The error is a *drawbridge.Fault with the code InvalidInput.
func StoreArgument(location, dir string) (string, error) {
	location, err := store.CheckLocation(location)
	if err != nil {
		return "", err
	}
	if !strings.Contains(location, "://") && location != gateway.MemoryStore && !filepath.IsAbs(location) {
		location = filepath.Join(dir, location)
	}
	return location, nil
}

// openStoreOfSettings opens the store that the settings name, without reading servers. Where no store exists, it
// returns nil unless create is set.
func (r *Service) openStoreOfSettings(ctx context.Context, create bool) (*store.DB, error) {
	s, err := config.LoadSettings(r.o.ConfigOptions)
	if err != nil {
		return nil, err
	}
	return r.openStore(ctx, config.Configuration{Settings: s}, create)
}

// openExistingStore opens the store of a configuration. The error is a *NoStoreError where no store exists, and a
// *drawbridge.Fault where one was there.
func (r *Service) openExistingStore(ctx context.Context, set config.Configuration) (*store.DB, error) {
	db, err := r.openStore(ctx, set, false)
	if err != nil || db != nil {
		return db, err
	}
	location, err := gateway.StoreLocation(r.o.Store, set.Settings, r.o.ConfigOptions.LookupEnv)
	if err != nil {
		return nil, err
	}
	return nil, &NoStoreError{location}
}

// A BrokenStream is a ledger stream whose hash chain does not hold.
type BrokenStream struct {
	Stream string
	Err    error
}

// A StoreReport is the result of an examination of the store.
type StoreReport struct {
	// Location is the path or the URL of the store, without its password; empty where it could not be opened.
	Location string
	Broken   []BrokenStream
	// Statuses holds the last known status of each configured server, in the order of the configuration.
	Statuses []drawbridge.ServerStatus
	// Trust holds the trust of each configured server, in the same order; nil where trust is not recorded.
	Trust []*drawbridge.Trust
	// Clock is how the clock of the store is.
	Clock store.ClockState
	// Lost reports that it is not the store that was there before; nil if it is.
	Lost error
	// Waiting are the records of calls beside it that wait for another store.
	Waiting   []gateway.WaitingSpool
	approvals store.RowApprovals
}

// Rejected reports whether the person rejected the row as it is now.
func (s StoreReport) Rejected(row config.Server) bool {
	decided, ok := s.approvals.Find(row)
	return ok && !decided.Approved && decided.Hash == row.Hash
}

// waitingSpools returns the records of calls that wait for another store than db.
func (r *Service) waitingSpools(ctx context.Context, db *store.DB) ([]gateway.WaitingSpool, error) {
	id, err := db.Identity(ctx)
	if err != nil {
		return nil, err
	}
	return gateway.WaitingSpools(r.o.Gateway, id)
}

// InspectStore verifies the ledger of every configuration in the store and reads the state of the servers in set. The
// report holds everything that was read before an error. The error is a *NoStoreError where no store exists.
func (r *Service) InspectStore(ctx context.Context, set config.Configuration) (report StoreReport, err error) {
	db, err := r.openExistingStore(ctx, set)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if report.Location, err = gateway.StoreLocation(r.o.Store, set.Settings, r.o.ConfigOptions.LookupEnv); err != nil {
		return report, err
	}
	if u, err := url.Parse(report.Location); err == nil && strings.Contains(report.Location, "://") {
		report.Location = u.Redacted()
	}
	report.Lost = gateway.CheckStore(ctx, r.o.Store, set.Settings, r.o.ConfigOptions.LookupEnv, db)
	if report.Waiting, err = r.waitingSpools(ctx, db); err != nil {
		return report, err
	}
	if report.Clock, err = db.ClockState(ctx); err != nil {
		return report, err
	}
	streams, err := db.LedgerStreams(ctx)
	if err != nil {
		return report, err
	}
	for _, stream := range streams {
		if _, err := verifyLedgerStream(ctx, db, stream); err != nil {
			report.Broken = append(report.Broken, BrokenStream{stream, err})
		}
	}
	mounts, err := db.MountsOf(ctx, config.ServerHashes(set.Servers))
	if err != nil {
		return report, err
	}
	book, err := gateway.ReadTrustRecords(ctx, db, set.Settings)
	if err != nil {
		return report, err
	}
	for _, row := range set.Servers {
		report.Statuses = append(report.Statuses, r.serverStatus(set.Settings, set.Servers, row, mounts[row.Hash]))
		report.Trust = append(report.Trust, trustOfServer(book, row))
	}
	report.approvals, err = db.RowApprovals(ctx, gateway.CurrentApprover())
	return report, err
}
