package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// TestAStoreThatCannotBeWrittenRefusesCalls has processes start one after the other with a store that takes no records:
// once so many bytes wait in the directory that there is no room, nothing is recorded, and the error says so.
func TestAStoreThatCannotBeWrittenRefusesCalls(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		open(t, location)
		refuseRecords(t, location)
		dir := t.TempDir()
		for n := range 40 {
			db := open(t, location)
			a := db.NewAuditWriter(dir, store.AuditOptions{MaxWaiting: 1000})
			err := a.Record(audit.Record{ID: fmt.Sprint(n), Kind: audit.Call, At: time.Now()})
			if closing := a.Close(t.Context()); closing == nil && err == nil {
				t.Error("the end says nothing of records that are not taken in")
			}
			if err == nil {
				continue
			}
			if f := drawbridge.AsFault(err); f.Code != drawbridge.Transient || f.Next != "see that the store can be written" {
				t.Errorf("start %d: %v", n, err)
			}
			return
		}
		t.Error("more waits than there is room for")
	})
}

// refuseRecords has the database take no records of calls, as where the role may only read.
func refuseRecords(t *testing.T, location string) {
	t.Helper()
	refuseWrites(t, location, "audit_blocks")
}

// refuseWrites has the database take nothing into a table.
func refuseWrites(t *testing.T, location, table string) {
	t.Helper()
	change := raw(t, location)
	if !strings.HasPrefix(location, "postgres") {
		for _, event := range []string{"INSERT", "UPDATE"} {
			change(fmt.Sprintf("CREATE TRIGGER refuse_%s BEFORE %[1]s ON %s BEGIN SELECT RAISE(ABORT, 'read only'); END",
				event, table))
		}
		return
	}
	change(`CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'read only'; END $$ LANGUAGE plpgsql`)
	change(fmt.Sprintf("CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION refuse()", table))
}
