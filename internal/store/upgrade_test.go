package store_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/google/go-cmp/cmp"
)

// An oldStore is a store that an earlier release wrote with these commands: "mcp approve team", "client add ci", two
// "tools call", and a "serve" with one granted and one waiting call. The key that sealed request states was zeroed.
type oldStore struct {
	file         string
	home         string // the directory above home and project
	auditRecords uint64
	streams      int // of the ledger
	grant, ask   string
}

var oldStores = []oldStore{
	{"schema11.db.gz", "/tmp/fixture", 10, 2, "7joauqvd", "tsygkron"},
	{"schema12.db.gz", "/tmp/fixture12/tree", 12, 1, "lc3dsue5", "35snglkt"},
}

// unpack returns the path of a copy of the store.
func (o oldStore) unpack(t *testing.T) string {
	t.Helper()
	packed, err := os.Open(filepath.Join("testdata", o.file))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	in, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "store.db")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenReadsAnEarlierReleasesStore(t *testing.T) {
	for _, old := range oldStores {
		t.Run(old.file, func(t *testing.T) { testOldStore(t, old) })
	}
}

func testOldStore(t *testing.T, old oldStore) {
	path := old.unpack(t)
	db := open(t, path)
	ctx := t.Context()

	t.Run("audit", func(t *testing.T) {
		report, err := db.VerifyAudit(ctx)
		if err != nil || report.First != 1 || report.Last != old.auditRecords {
			t.Errorf("verify: records %d to %d, %v; want 1 to %d", report.First, report.Last, err, old.auditRecords)
		}
		var cards []string
		for r, err := range db.AuditRecords(ctx, time.Time{}) {
			if err != nil {
				t.Fatal(err)
			}
			var record audit.Record
			if err := json.Unmarshal(r.Body, &record); err != nil {
				t.Fatal(err)
			}
			if record.Kind == audit.Call {
				cards = append(cards, record.Card)
			}
		}
		want := []string{"notes__read_note", "team__read_note", "notes__write_note"}
		if diff := cmp.Diff(want, cards); diff != "" {
			t.Error("cards called (-want +got):\n" + diff)
		}
	})
	t.Run("ledger", func(t *testing.T) {
		streams, err := db.LedgerStreams(ctx)
		if err != nil || len(streams) != old.streams {
			t.Fatalf("streams %v, %v; want %d", streams, err, old.streams)
		}
		for _, stream := range streams {
			if err := ledger.VerifyChains(db.LedgerRecords(ctx, stream)); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("mounts", func(t *testing.T) {
		mounts, err := db.Mounts(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := map[drawbridge.ServerID]int{}
		for _, m := range mounts {
			got[m.Listing.Server] = len(m.Listing.Tools)
		}
		if diff := cmp.Diff(map[drawbridge.ServerID]int{"notes": 2, "team": 2}, got); diff != "" {
			t.Error("tools listed (-want +got):\n" + diff)
		}
	})
	t.Run("approvals", func(t *testing.T) {
		rows, err := db.RowApprovals(ctx, store.Approver{Principal: "ada", Machine: "m"})
		if err != nil || len(rows) != 1 || rows[0].Server != "team" || !rows[0].Approved {
			t.Errorf("approvals of rows %+v, %v; want team's", rows, err)
		}
		grants, err := db.Grants(ctx)
		if err != nil || len(grants) != 1 || grants[0].ID != old.grant || grants[0].ForCard {
			t.Errorf("grants %+v, %v; want one for a call", grants, err)
		}
		waiting, err := db.PendingApprovals(ctx)
		if err != nil || len(waiting) != 0 {
			t.Errorf("pending approvals %+v, %v; want none: they expired", waiting, err)
		}
		raw(t, path)("UPDATE asks SET ends = $1, held = $1", time.Now().Add(time.Hour).UnixMilli())
		waiting, err = db.PendingApprovals(ctx)
		if err != nil || len(waiting) != 1 || waiting[0].ID != old.ask {
			t.Errorf("pending approvals %+v, %v; want %s", waiting, err, old.ask)
		}
	})
}

func TestAnEarlierReleasesClientsAndPinsAreKept(t *testing.T) {
	for _, old := range oldStores {
		db, ctx := open(t, old.unpack(t)), t.Context()
		clients, err := db.Clients(ctx)
		if err != nil || len(clients) != 1 || clients[0].Name != "ci" ||
			clients[0].Origin != workspace.AgentProduced {
			t.Errorf("%s: clients %+v, %v; want ci with the default origin", old.file, clients, err)
		}
		pins, err := db.Pins(ctx, store.PinKey{
			Origin: old.home + "/home/.config/drawbridge/mcp.json", Server: "notes"})
		if err != nil || len(pins) != 2 {
			t.Errorf("%s: %d pins, %v; want those of two tools", old.file, len(pins), err)
		}
	}
}

// TestUnnamedApprovalsCountInAFileOnly has an approval of an earlier release, which kept no name.
func TestUnnamedApprovalsCountInAFileOnly(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db, ctx := open(t, location), t.Context()
		raw(t, location)(`INSERT INTO row_approvals (path, server, principal, machine, hash, facts, approved, at)
			VALUES ('/srv/.mcp.json', 'db', '', '', '1', '[]', 1, 1)`)
		want := 1
		if strings.HasPrefix(location, "postgres") {
			want = 0
		}
		rows, err := db.RowApprovals(ctx, approver)
		if err != nil || len(rows) != want {
			t.Errorf("%d approvals, %v; want %d", len(rows), err, want)
		}
		own := store.RowApproval{By: approver, Path: "/srv/.mcp.json", Server: "db", Hash: "1"}
		if err := db.SaveRowApproval(ctx, own); err != nil {
			t.Fatal(err)
		}
		if rows, err := db.RowApprovals(ctx, approver); err != nil || len(rows) != 1 || rows[0].Approved {
			t.Errorf("after one's own decision: %+v, %v", rows, err)
		}
	})
}

// TestEveryVersionIsBroughtUpToDate opens the empty tables of each earlier version.
func TestEveryVersionIsBroughtUpToDate(t *testing.T) {
	for version := range store.Versions {
		onEach(t, func(t *testing.T, location string) {
			if err := store.CreateVersion(t.Context(), location, version); err != nil {
				t.Fatal(err)
			}
			db := open(t, location)
			if _, err := db.ClockState(t.Context()); err != nil {
				t.Errorf("version %d: %v", version, err)
			}
			if _, err := db.RowApprovals(t.Context(), approver); err != nil {
				t.Errorf("version %d: %v", version, err)
			}
		})
	}
}

// TestAGrantOfBeforeHasNoMaximum has a grant that was stored before grants had a maximum.
func TestAGrantOfBeforeHasNoMaximum(t *testing.T) {
	const version = 13
	onEach(t, func(t *testing.T, location string) {
		if err := store.CreateVersion(t.Context(), location, version); err != nil {
			t.Fatal(err)
		}
		raw(t, location)(`INSERT INTO grants (id, principal, session, subject, for_card, shown, created, ends, uses, said_by)
			VALUES ('old', 'ada', '', 'call x', 0, '{}', 1, 0, 7, 'bob')`)
		db := open(t, location)
		if g, used, err := db.UseGrant(t.Context(), askOf("x")); !used || g.ID != "old" || err != nil {
			t.Errorf("%+v, %v, %v", g, used, err)
		}
		if g := grantsOf(t, db)["old"]; g.Uses != 8 || g.Max != 0 || g.Pattern != "" {
			t.Errorf("%+v", g)
		}
		if counted, err := db.CountedGrants(t.Context(), "ada", "", "call x"); len(counted) > 0 || err != nil {
			t.Errorf("it counts calls: %+v, %v", counted, err)
		}
	})
}

// TestAClientOfBeforeIsAgentProduced has a client that was stored before clients had an origin.
func TestAClientOfBeforeIsAgentProduced(t *testing.T) {
	const version = 15
	token := sha256.Sum256([]byte("token"))
	onEach(t, func(t *testing.T, location string) {
		if err := store.CreateVersion(t.Context(), location, version); err != nil {
			t.Fatal(err)
		}
		raw(t, location)(`INSERT INTO clients (name, token, scopes, created, expires, used, ended)
			VALUES ('old', $1, $2, 1000, 0, 0, 0)`, token[:], []byte(`["mcp:github"]`))
		db := open(t, location)
		want := store.Client{Name: "old", Scopes: []drawbridge.Scope{"mcp:github"}, Origin: workspace.AgentProduced,
			Created: time.UnixMilli(1000)}
		got, found, err := db.ClientByToken(t.Context(), token)
		if diff := cmp.Diff(want, got); !found || err != nil || diff != "" {
			t.Errorf("found %v, %v, -want +got:\n%s", found, err, diff)
		}
		fresh := store.Client{Name: "new", Origin: workspace.Observed}
		if err := db.AddClient(t.Context(), fresh, sha256.Sum256([]byte("other"))); err != nil {
			t.Fatal(err)
		}
		all, err := db.Clients(t.Context())
		if err != nil || len(all) != 2 || all[0].Origin != workspace.Observed || all[1].Origin != workspace.AgentProduced {
			t.Errorf("%+v, %v; want new and old", all, err)
		}
	})
}
