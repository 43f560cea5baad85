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
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// A TestedStore is what the suite tests.
type TestedStore interface {
	ledger.Journal
	RecordReader
	StateStore
	PinStore
	Close() error
}

// StateStore is what outlives a process beside the journal.
type StateStore interface {
	MountStore
	DecisionStore
	SecretStore
	ClientStore
	VettedListings
}

// VettedListings is the memory of what may be shown of listings.
type VettedListings interface {
	SaveVetted(ctx context.Context, vetted map[string][]byte) error
	FirstTools(ctx context.Context, row string, server drawbridge.ServerID, tools []json.RawMessage) (
		[]json.RawMessage, error)
	ForgetFirstTools(ctx context.Context, server drawbridge.ServerID) (found bool, err error)
}

// DecisionStore are what a person decided.
type DecisionStore interface {
	ApprovalStore
	AskQueue
	AskGrants
	HeldResults
	ResultScans
}

// SecretStore are bytes that are the same for all.
type SecretStore interface {
	SharedSecret(ctx context.Context, name string, size int) ([]byte, error)
}

// ClientStore are those that have tokens of their own.
type ClientStore interface {
	AddClient(ctx context.Context, c store.Client, token [sha256.Size]byte) error
	RemoveClient(ctx context.Context, name string) (bool, error)
	Clients(ctx context.Context) ([]store.Client, error)
	ClientUses
}

// ClientUses is what happens when a client comes.
type ClientUses interface {
	ClientByToken(ctx context.Context, token [sha256.Size]byte) (store.Client, bool, error)
	HasClients(ctx context.Context) (bool, error)
	MarkClientUsed(ctx context.Context, name string, when time.Time) error
}

// ApprovalStore is the memory of what a person decided.
type ApprovalStore interface {
	SaveRowApproval(ctx context.Context, a store.RowApproval) error
	RowApprovals(ctx context.Context, by store.Approver) (store.RowApprovals, error)
}

// RecordReader are the journal as it is stored.
type RecordReader interface {
	LedgerRecords(ctx context.Context, stream string) iter.Seq2[ledger.Record, error]
	LedgerStreams(ctx context.Context) ([]string, error)
}

// A MountStore stores the listings and the states of servers.
type MountStore interface {
	RecordAttempt(ctx context.Context, row string, id drawbridge.ServerID) error
	SaveListing(ctx context.Context, l drawbridge.Listing) error
	SaveStatus(ctx context.Context, row string, s drawbridge.ServerStatus) error
	Mounts(ctx context.Context) (map[string]store.MountRecord, error)
	MountsOf(ctx context.Context, rows []string) (map[string]store.MountRecord, error)
}

// A OpenStore is where one store is. Each call opens it once more, as another process would.
type OpenStore func() TestedStore

// RunStoreTests tests stores. For each test it asks for a fresh place, with nothing stored; it closes what it opens.
func RunStoreTests(t *testing.T, fresh func(t *testing.T) OpenStore) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, p OpenStore)
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
		{"ApprovalsAreOnesOwn", testApprovalsAreOnesOwn},
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
		{"ResultScans", testResultScans},
		{"Cancelled", testCancelled},
		{"Closed", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			place := fresh(t)
			test.run(t, func() TestedStore {
				s := place()
				t.Cleanup(func() { s.Close() })
				return s
			})
		})
	}
}
