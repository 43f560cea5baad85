package gateway_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// actConfig is a configuration whose store and settings are in dir.
func actConfig(t *testing.T, dir, settings string) gateway.Config {
	t.Helper()
	env := map[string]string{"HOME": dir}
	path := filepath.Join(dir, ".config", "drawbridge", "drawbridge.toml")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(settings),
		0o600)); err != nil {
		t.Fatal(err)
	}
	return gateway.Config{
		Dir: dir, Store: filepath.Join(dir, "store.db"),
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	}
}

// TestActsAreOnRecord has people do things to what guards go by: each is on record before it is done, with what came
// of it.
func TestActsAreOnRecord(t *testing.T) {
	dir := t.TempDir()
	c := actConfig(t, dir, "")
	spools := func() int {
		all, err := filepath.Glob(filepath.Join(dir, "store.db-audit", "*.spool"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	clerk := c.AdminRecorder()
	if err := clerk.Run(gateway.AdminAction{Command: "shield accept", Server: "fs", Subject: "put",
		Detail: "definition 12"}, func() error {
		if spools() != 1 {
			t.Error("it is done and not on record")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	late := &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.NotFound, Step: "late"}
	if err := clerk.Run(gateway.AdminAction{Command: "ask revoke", Detail: "k3f9qzab"},
		func() error { return late }); !errors.Is(err, late) {
		t.Errorf("it failed with %v", err)
	}
	db, err := store.Open(t.Context(), c.Store, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := gateway.RecoverAudit(t.Context(), c, db); err != nil {
		t.Fatal(err)
	}
	all := auditOf(t, db)
	who := audit.Caller{Kind: "author", Principal: gateway.CurrentUser()}
	want := []audit.Record{
		{Kind: audit.AdminAction, Caller: who, Transport: "command line", Method: "shield accept", Card: "put",
			Server: "fs", Tool: "put", Reason: "definition 12", Outcome: audit.OK},
		{Kind: audit.AdminAction, Caller: who, Transport: "command line", Method: "ask revoke", Reason: "k3f9qzab",
			Outcome: audit.Fault, Code: "not_found"},
	}
	if diff := cmp.Diff(want, audit.MergeOutcomes(all), cmpopts.IgnoreFields(audit.Record{}, "ID", "At",
		"Duration")); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
}

// TestAnActThatCannotBeRecordedIsNotDone takes the place of the records away, and then the need for them.
func TestAnActThatCannotBeRecordedIsNotDone(t *testing.T) {
	for name, tt := range map[string]struct {
		settings string
		done     bool
	}{"the audit cannot be written": {}, "the audit is off": {"[audit]\nenabled = false\n", true}} {
		dir := t.TempDir()
		c := actConfig(t, dir, tt.settings)
		if err := os.WriteFile(c.Store+"-audit", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		done := false
		err := c.AdminRecorder().Run(gateway.AdminAction{Command: "client add"},
			func() error { done = true; return nil })
		if done != tt.done || (err == nil) != tt.done {
			t.Errorf("%s: done %v, %v", name, done, err)
		}
		if f := drawbridge.AsFault(err); err != nil && (f.Code != drawbridge.ServerError || f.Next == "") {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if c := (gateway.AdminRecorder)(nil); c.Run(gateway.AdminAction{}, func() error { return nil }) != nil {
		t.Error("no one keeps a record, and nothing is done")
	}
}

// auditOf returns the record as the store has it.
func auditOf(t *testing.T, db *store.DB) (all []audit.Record) {
	t.Helper()
	for r, err := range db.AuditRecords(t.Context(), time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		one, err := audit.DecodeRecord(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// TestChangedRulesAreOnRecord has a person write rules while a gateway runs.
func TestChangedRulesAreOnRecord(t *testing.T) {
	dir := t.TempDir()
	c := actConfig(t, dir, "")
	g, err := gateway.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	actConfig(t, dir, "[tools.policy]\nenabled = true\ndefault_effect = \"deny\"\n")
	for range 2 { // the second time nothing changed
		if _, err := g.Reload(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	db, err := store.Open(t.Context(), c.Store, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got := auditOf(t, db)
	if len(got) != 1 || got[0].Kind != audit.AdminAction || got[0].Method != "rules changed" ||
		got[0].Transport != "files" || !strings.HasPrefix(got[0].Reason, "0 rules, sha256:") {
		t.Errorf("on record: %+v", got)
	}
}
