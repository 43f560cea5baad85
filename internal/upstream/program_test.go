//go:build unix

package upstream

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/google/go-cmp/cmp"
)

// TestTR1WhatWasApprovedIsWhatRuns starts a project's server: the file that was approved, though its command means
// another one by now; and nothing where that file has changed, or none was approved. To try again is of no use, and
// the fault says so.
func TestTR1WhatWasApprovedIsWhatRuns(t *testing.T) {
	real := stdioRow(t, "everything")
	dir := t.TempDir()
	script := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text),
			0o700)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	approved := script("approved/tool", "#!/bin/sh\nexec '"+real.Command+"'\n")
	stolen := filepath.Join(dir, "stolen")
	script("first/tool", "#!/bin/sh\ntouch '"+stolen+"'\n")
	project := func(id drawbridge.ServerID, path string) config.Server {
		row := real
		row.ID, row.Hash, row.Command, row.Origin = id, string(id), "tool", config.Origin{Kind: config.OriginProject}
		row.Env = append([]config.NameValue{{Name: "PATH", Value: filepath.Join(dir, "first") + ":/usr/bin:/bin"}},
			real.Env...)
		if path != "" {
			var err error
			if row.Program, err = config.HashProgram(path); err != nil {
				t.Fatal(err)
			}
		}
		return row
	}
	missing := project("missing", "")
	missing.Command = "no-such-tool"
	changed := project("changed", script("changed/tool", "#!/bin/sh\n"))
	script("changed/tool", "#!/bin/sh\ntouch '"+stolen+"'\n")
	r := runReal(t, Options{OnDemand: true}, project("well", approved), changed, project("never", ""), missing)
	r.mount("well")
	r.say("well", caller(drawbridge.Modern))

	type refusal struct {
		Code drawbridge.FaultCode
		Text string
	}
	why := map[drawbridge.ServerID]refusal{
		"changed": {drawbridge.PolicyBlocked, "its program " + filepath.Join(dir, "changed/tool") +
			" is not the one that was approved: what the file holds has changed (review it with: drawbridge mcp approve changed)"},
		"never": {drawbridge.PolicyBlocked,
			"its program was not there when it was approved (review it with: drawbridge mcp approve never)"},
		"missing": {drawbridge.Transient, `command "no-such-tool" not found on PATH`},
	}
	for id, want := range why {
		_, err := r.Mount(t.Context(), id)
		_, called := r.Do(t.Context(), id, toolCall(caller(drawbridge.Modern), "echo", `{}`))
		for _, err := range []error{err, called} {
			f := drawbridge.AsFault(err)
			got := refusal{f.Code, f.Error()}
			if !strings.Contains(got.Text, want.Text) || strings.Contains(got.Text,
				"(retry)") != (want.Code == drawbridge.Transient && err == called) {
				t.Errorf("%s: %s", id, got.Text)
			}
			if diff := cmp.Diff(want.Code, got.Code); diff != "" {
				t.Errorf("%s: %s", id, diff)
			}
		}
	}
	if _, err := os.Stat(stolen); err == nil {
		t.Error("what nobody approved was started")
	}
}
