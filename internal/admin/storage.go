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

// A NoStoreError reports that the store has not been created yet.
type NoStoreError struct {
	// Location is the path at which the store would be created.
	Location string
}

// Error returns a sentence with the location and the command that creates a store.
func (e *NoStoreError) Error() string {
	return fmt.Sprintf("no store exists at %s yet (drawbridge serve creates it; --store names another)", e.Location)
}

// StoreArgument checks a store location that a person entered. It returns the location in a form that a program with
// another working directory can use. A relative path is joined to dir. The error is a *drawbridge.Fault with the code
// InvalidInput.
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

// openStoreOfSettings opens the store that the settings name, without reading the configured servers. If there is no
// store, it creates one if create is set, and otherwise returns nil.
func (r *Service) openStoreOfSettings(ctx context.Context, create bool) (*store.DB, error) {
	s, err := config.LoadSettings(r.o.ConfigOptions)
	if err != nil {
		return nil, err
	}
	return r.openStore(ctx, config.Configuration{Settings: s}, create)
}

// openExistingStore opens the store of a configuration. If there is no store, the error is a *NoStoreError. If another
// store was at the location before and is missing or replaced, the error is a *drawbridge.Fault.
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

// A BrokenStream is a ledger stream that Ledger.Verify finds damaged; Err is the error of Verify.
type BrokenStream struct {
	Stream string
	Err    error
}

// A StoreReport is the result of InspectStore.
type StoreReport struct {
	// Location is the path or the URL of the store, without its password. It is empty if the store could not be opened.
	Location string
	Broken   []BrokenStream
	// Statuses are the last known statuses of the configured servers, in the order of the configuration.
	Statuses []drawbridge.ServerStatus
	// Trust are the trust scores of the configured servers, in the same order. The elements are nil if trust scores are
	// turned off.
	Trust []*drawbridge.Trust
	// Clock is the state of the store's clock.
	Clock store.ClockState
	// Lost is set if another store was at the configured location before; it is nil if this is the expected store.
	Lost error
	// Waiting are directories with audit records that belong to another store and are not stored there yet.
	Waiting   []gateway.WaitingSpool
	approvals store.RowApprovals
}

// Rejected reports whether the person rejected the row and the row has not changed since.
func (s StoreReport) Rejected(row config.Server) bool {
	decided, ok := s.approvals.Find(row)
	return ok && !decided.Approved && decided.Hash == row.Hash
}

// waitingSpools returns the directories with audit records that belong to a store other than db and are not stored
// there yet.
func (r *Service) waitingSpools(ctx context.Context, db *store.DB) ([]gateway.WaitingSpool, error) {
	id, err := db.Identity(ctx)
	if err != nil {
		return nil, err
	}
	return gateway.WaitingSpools(r.o.Gateway, id)
}

// InspectStore verifies all ledger streams in the store, and reads the stored state of the servers in set. Damaged
// streams are in report.Broken, not in err. After an error, the report has everything that was read before the error.
// If there is no store, the error is a *NoStoreError.
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
