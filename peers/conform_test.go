//go:build peers

package peers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestConformance runs the server leg of the official suite for both generations, on one URL, without a list of
// expected failures. The upstream is the SDK's conformance server, which speaks both on standard input and output.
func TestConformance(t *testing.T) {
	url := serveHTTP(t, []row{{Name: "upstream", Command: conformant}}, "--naming", "bare")
	listed(t, &httpDoor{url: url, era: modern}, "test_simple_text")
	for _, leg := range []struct {
		revision string
		scored   int
	}{
		{"2025-11-25", 30},
		{"2026-07-28", 37},
	} {
		t.Run(leg.revision, func(t *testing.T) {
			out := suite(t, url, leg.revision)
			scored, others := scores(out)
			t.Logf("%s\nscored: %d of %d pass\nnot scored:\n%s", out, len(scored.passed), leg.scored, strings.Join(others, "\n"))
			if len(scored.failed) > 0 || len(scored.passed) != leg.scored {
				t.Errorf("%d of %d scored scenarios pass; these do not: %v", len(scored.passed), leg.scored, scored.failed)
			}
		})
	}
}

// suite runs the suite and gives what it printed from its summary on. Its own records stay under .cache.
func suite(t *testing.T, url, revision string) string {
	t.Helper()
	records, err := filepath.Abs(filepath.Join("..", ".cache", "conform", revision))
	if err == nil {
		err = errors.Join(os.RemoveAll(records), os.MkdirAll(records, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx := limit(t, 5*time.Minute)
	cmd := exec.CommandContext(ctx, node, module(t, "@modelcontextprotocol/conformance/dist/index.js"),
		"server", "--url", url, "--requirements", revision, "-o", records)
	cmd.Dir, cmd.WaitDelay = t.TempDir(), time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() == context.DeadlineExceeded {
		t.Fatalf("the suite did not end:\n%s", out)
	}
	_, summary, ok := strings.Cut(string(out), "=== SUMMARY ===\n")
	if !ok {
		t.Fatalf("the suite printed no summary: %v\n%s", err, out)
	}
	if err != nil {
		t.Errorf("the suite says that a scored scenario failed: %v; its records are in %s", err, records)
	}
	return summary
}

type tally struct{ passed, failed []string }

var (
	scenarioLine = regexp.MustCompile(`(?m)^([✓✗]) ([a-z0-9-]+): (\d+) passed, (\d+) failed`)
	unscoredLine = regexp.MustCompile(`(?m)^  ([✓✗]) ([a-z0-9-]+) \(`)
)

// scores divides a summary into the scenarios that count and a line for each of the others.
func scores(summary string) (scored tally, others []string) {
	var unscored []string
	for _, m := range unscoredLine.FindAllStringSubmatch(summary, -1) {
		unscored = append(unscored, m[2])
	}
	for _, m := range scenarioLine.FindAllStringSubmatch(summary, -1) {
		switch name := m[2]; {
		case slices.Contains(unscored, name):
			others = append(others, m[0])
		case m[1] == "✓" && m[4] == "0":
			scored.passed = append(scored.passed, name)
		default:
			scored.failed = append(scored.failed, name)
		}
	}
	return scored, others
}
