// Package storetest provides the tests that every store must pass, whichever database it uses. Tests of behaviour
// that only one database has are in package store.
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

// A TestedStore is a store under test.
type TestedStore interface {
	ledger.Journal
	RecordReader
	StateStore
	PinStore
	Close() error
}

// StateStore contains the methods of a store for persistent data other than the journal.
type StateStore interface {
	MountStore
	DecisionStore
	SecretStore
	ClientStore
	VettedListings
}

// VettedListings contains the methods of a store for the results of vetting, which is the check of listings. It also
// contains the methods for the list of tools that was saved first for a configuration row, and for learned outputs.
type VettedListings interface {
	SaveVetted(ctx context.Context, vetted map[string][]byte) error
	FirstTools(ctx context.Context, row string, server drawbridge.ServerID, tools []json.RawMessage) (
		[]json.RawMessage, error)
	ForgetFirstTools(ctx context.Context, server drawbridge.ServerID) (found bool, err error)
	LearnedOutputs
}

// DecisionStore contains the methods of a store for decisions of people.
type DecisionStore interface {
	ApprovalStore
	AskQueue
	AskGrants
	HeldResults
	ResultScans
}

// SecretStore contains the method of a store for random bytes that all processes share.
type SecretStore interface {
	SharedSecret(ctx context.Context, name string, size int) ([]byte, error)
}

// ClientStore contains the methods of a store for clients with their own tokens.
type ClientStore interface {
	AddClient(ctx context.Context, c store.Client, token [sha256.Size]byte) error
	RemoveClient(ctx context.Context, name string) (bool, error)
	Clients(ctx context.Context) ([]store.Client, error)
	ClientUses
}

// ClientUses contains the methods of a store that are called when a client sends a request with its token.
type ClientUses interface {
	ClientByToken(ctx context.Context, token [sha256.Size]byte) (store.Client, bool, error)
	HasClients(ctx context.Context) (bool, error)
	MarkClientUsed(ctx context.Context, name string, when time.Time) error
}

// ApprovalStore contains the methods of a store for decisions about configuration rows.
type ApprovalStore interface {
	SaveRowApproval(ctx context.Context, a store.RowApproval) error
	RowApprovals(ctx context.Context, by store.Approver) (store.RowApprovals, error)
}

// RecordReader contains the methods of a store that return the stored records of the journal.
type RecordReader interface {
	LedgerRecords(ctx context.Context, stream string) iter.Seq2[ledger.Record, error]
	LedgerStreams(ctx context.Context) ([]string, error)
}

// MountStore contains the methods of a store for the listings and states of servers.
type MountStore interface {
	RecordAttempt(ctx context.Context, row string, id drawbridge.ServerID) error
	SaveListing(ctx context.Context, l drawbridge.Listing) error
	SaveStatus(ctx context.Context, row string, s drawbridge.ServerStatus) error
	Mounts(ctx context.Context) (map[string]store.MountRecord, error)
	MountsOf(ctx context.Context, rows []string) (map[string]store.MountRecord, error)
}

// An OpenStore opens a store. Each call opens the same store again, as another process would.
type OpenStore func() TestedStore

// RunStoreTests runs the tests. For each test it calls fresh, which must return a function that opens a new, empty
// store. RunStoreTests closes the stores that it opens.
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
		{"LearnedOutputs", testLearnedOutputs},
		{"LearnedOutputsOneAfterTheOther", testLearnedOutputsOneAfterTheOther},
		{"Secret", testSecret},
		{"Clients", testClients},
		{"Pins", testPins},
		{"PinsAreKeptWholeOrNotAtAll", testPinsAreKeptWholeOrNotAtAll},
		{"PinsOneAfterTheOther", testPinsOneAfterTheOther},
		{"Asks", testAsks},
		{"AsksAreOver", testAsksAreOver},
		{"AsksAreLimited", testAsksAreLimited},
		{"Grants", testGrants},
		{"CountedGrants", testCountedGrants},
		{"TwoProcessesUseOneCount", testTwoProcessesUseOneCount},
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
