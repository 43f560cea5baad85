package guards_test

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/google/go-cmp/cmp"
)

func TestServerTable(t *testing.T) {
	type facts struct {
		Rate guards.ServerRate
		Dir  string
		Dirs []string
	}
	var table guards.ServerTable
	ask := func(id drawbridge.ServerID) facts {
		return facts{table.Rate(id), table.WorkingDir(id), table.RelativeDirs(id)}
	}
	if diff := cmp.Diff(facts{}, ask("fs")); diff != "" {
		t.Errorf("before the first update (-want +got):\n%s", diff)
	}
	rows := []config.Server{
		{ID: "fs", Hash: "1", Command: "x", Args: []string{"/data"}, Cwd: "/home/ada", MaxCallsPerMinute: 7},
		{ID: "web", Hash: "2", URL: "https://example.com/mcp", Cwd: "/home/ada"},
	}
	table.Update(rows, []string{"file:///root"})
	for id, want := range map[drawbridge.ServerID]facts{
		"fs":    {guards.ServerRate{Name: "1", Max: 7}, "/home/ada", []string{"/home/ada", "/data", "/root"}},
		"web":   {Rate: guards.ServerRate{Name: "2"}},
		"other": {},
	} {
		if diff := cmp.Diff(want, ask(id)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	table.Update(rows[1:], nil)
	if diff := cmp.Diff(facts{}, ask("fs")); diff != "" {
		t.Errorf("after its removal (-want +got):\n%s", diff)
	}
}
