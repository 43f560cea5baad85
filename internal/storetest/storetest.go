// Package storetest has the suite that every store passes. It says what may be relied on whatever the database is; what
// only one of them can do to its files is tested beside that store.
package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"iter"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/drawbridge-mcp/drawbridge/store"
)

// A Store is what the suite tests.
type Store interface {
	ledger.Journal
	Records
	Memory
	Pins
	Close() error
}

// Memory is what outlives a process beside the journal.
type Memory interface {
	Mounts
	Decisions
	Secrets
	Clients
	Vetted
}

// Vetted is the memory of what may be shown of listings.
type Vetted interface {
	SaveVetted(ctx context.Context, vetted map[string][]byte) error
	FirstTools(ctx context.Context, row string, server drawbridge.ServerID, tools []json.RawMessage) ([]json.RawMessage, error)
	ForgetFirstTools(ctx context.Context, server drawbridge.ServerID) (found bool, err error)
}

// Decisions are what a person decided.
type Decisions interface {
	Approvals
	Asks
	Grants
	Held
}

// Secrets are bytes that are the same for all.
type Secrets interface {
	Secret(ctx context.Context, name string, size int) ([]byte, error)
}

// Clients are those that have tokens of their own.
type Clients interface {
	AddClient(ctx context.Context, c store.Client, token [sha256.Size]byte) error
	RemoveClient(ctx context.Context, name string) (bool, error)
	Clients(ctx context.Context) ([]store.Client, error)
	ClientUses
}

// ClientUses is what happens when a client comes.
type ClientUses interface {
	Client(ctx context.Context, token [sha256.Size]byte) (store.Client, bool, error)
	HasClients(ctx context.Context) (bool, error)
	ClientUsed(ctx context.Context, name string, when time.Time) error
}

// Approvals is the memory of what a person decided.
type Approvals interface {
	Approve(ctx context.Context, a store.Approval) error
	Approvals(ctx context.Context) (store.Approvals, error)
}

// Records are the journal as it is stored.
type Records interface {
	Records(ctx context.Context, stream string) iter.Seq2[ledger.Record, error]
	Streams(ctx context.Context) ([]string, error)
}

// Mounts is the memory of servers.
type Mounts interface {
	Attempt(ctx context.Context, row string, id drawbridge.ServerID) error
	SaveListing(ctx context.Context, l drawbridge.Listing) error
	SaveStatus(ctx context.Context, row string, s drawbridge.Status) error
	Mounts(ctx context.Context) (map[string]store.Mount, error)
	MountsOf(ctx context.Context, rows []string) (map[string]store.Mount, error)
}

// A Place is where one store is. Each call opens it once more, as another process would.
type Place func() Store

// Run tests stores. For each test it asks for a fresh place, with nothing stored; it closes what it opens.
func Run(t *testing.T, fresh func(t *testing.T) Place) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, p Place)
	}{
		{"AppendAndReplay", testAppendAndReplay},
		{"AppendIsWholeOrNothing", testAppendIsWholeOrNothing},
		{"LargeBatch", testLargeBatch},
		{"TwoWriters", testTwoWriters},
		{"RecordsWhileAppending", testRecordsWhileAppending},
		{"Streams", testStreams},
		{"LedgerOutlivesTheProcess", testLedgerOutlivesTheProcess},
		{"Mounts", testMounts},
		{"ListingIsKeptByteForByte", testListingIsKeptByteForByte},
		{"AttemptEndsWithAListing", testAttemptEndsWithAListing},
		{"Approvals", testApprovals},
		{"Vetted", testVetted},
		{"FirstTools", testFirstTools},
		{"Secret", testSecret},
		{"Clients", testClients},
		{"Pins", testPins},
		{"PinsAreKeptWholeOrNotAtAll", testPinsAreKeptWholeOrNotAtAll},
		{"PinsOneAfterTheOther", testPinsOneAfterTheOther},
		{"Asks", testAsks},
		{"AsksAreOver", testAsksAreOver},
		{"AsksAreLimited", testAsksAreLimited},
		{"Grants", testGrants},
		{"HeldResults", testHeldResults},
		{"Cancelled", testCancelled},
		{"Closed", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			place := fresh(t)
			test.run(t, func() Store {
				s := place()
				t.Cleanup(func() { s.Close() })
				return s
			})
		})
	}
}
