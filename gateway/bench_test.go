package gateway

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// BenchmarkFirstList opens a gateway with 50 remembered servers, none of which answers any more, and lists 1,000 tools.
func BenchmarkFirstList(b *testing.B) {
	c := Config{Store: filepath.Join(b.TempDir(), "x.db")}
	var listings []drawbridge.Listing
	for i := range 50 {
		row, err := completeRow(config.Server{ID: drawbridge.ServerID(fmt.Sprintf("server%d", i)),
			Command: "no-such-command"}, nil)
		if err != nil {
			b.Fatal(err)
		}
		c.Servers = append(c.Servers, row)
		l := drawbridge.Listing{Server: row.ID, ConfigHash: row.Hash, Era: drawbridge.Legacy}
		for j := range 20 {
			l.Tools = append(l.Tools, json.RawMessage(fmt.Sprintf(
				`{"name":"tool_%d","description":"Does the thing with the number %d.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`, j, j)))
		}
		listings = append(listings, l)
	}
	db, err := store.Open(b.Context(), c.Store, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, l := range listings {
		if err := db.SaveListing(b.Context(), l); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	first := true
	for b.Loop() {
		g, err := Open(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		list, err := g.Deck().List(b.Context(), g.Owner(), mcp.MethodToolsList)
		if err != nil || len(list.Items) < 1000 {
			b.Fatal(len(list.Items), err)
		}
		b.StopTimer()
		g.revetStale(b.Context())
		if err := g.Close(); err != nil {
			b.Fatal(err)
		}
		if first { // it has enrolled everything, and what may be shown is kept: from now on a start records nothing
			first = false
			b.ResetTimer()
		}
		b.StartTimer()
	}
}
