package vetting_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/trust"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
)

// TestQuarantinesOfOtherConfigurationsAreNotLogged has two servers in quarantine, one of them configured.
func TestQuarantinesOfOtherConfigurationsAreNotLogged(t *testing.T) {
	here, elsewhere := config.Server{ID: "here", Command: "x"}, config.Server{ID: "elsewhere", Command: "y"}
	s := newShelf()
	before := vetting.NewTrustAccounts(s, vetting.TrustOptions{})
	for _, row := range []config.Server{here, elsewhere} {
		before.AddEvents(vetting.TrustAccountName(row), string(row.ID),
			trust.Event{Kind: trust.TextSanitised, Count: 3, Marks: []string{"a", "b", "c"}})
	}
	if err := before.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	b := vetting.NewTrustAccounts(s, vetting.TrustOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := b.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	servers := vetting.NewServerTrust(b)
	servers.Update([]config.Server{here})
	servers.Update([]config.Server{here})
	servers.LogQuarantine(vetting.TrustAccountName(elsewhere))
	if got := log.String(); strings.Count(got, "a server is quarantined") != 1 || !strings.Contains(got, "server=here") {
		t.Errorf("logged:\n%s", got)
	}
}
