//go:build peers

package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A leg is what the suite asks of one side for one revision.
type leg struct {
	revision string
	// scored is how many scenarios count.
	scored int
	// more are scenarios that do not count and must pass all the same.
	more []string
}

// TestConformance runs the server leg of the official suite for both generations, on one URL, without a list of
// expected failures: as clients are usually listed all tools, and once more with each short list. The upstream is the SDK's
// conformance server, which speaks both on standard input and output.
func TestConformance(t *testing.T) {
	for mode, first := range map[string]string{"direct": "test_simple_text", "search": "find_tools",
		"code": "search_tools"} {
		cmd := serveCommand(t, []row{{Name: "upstream", Command: conformant}}, "--http", "127.0.0.1:0",
			"--naming", "bare")
		file := filepath.Join(cmd.Dir, "drawbridge", "drawbridge.toml")
		// What the suite looks for in the list is pinned, and nothing else.
		settings := "[mcp.tool_discovery]\nmode = \"" + mode +
			"\"\nalways_include = [\"json_schema_2020_12_tool\", \"test_x_mcp_header\"]\n"
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(settings),
			0o600)); err != nil {
			t.Fatal(err)
		}
		url := served(t, cmd)
		listed(t, &httpDoor{url: url, era: modern}, first)
		for _, leg := range []leg{
			{"2025-11-25", 30, []string{"server-session-lifecycle", "json-schema-2020-12"}},
			{"2026-07-28", 37, []string{"json-schema-2020-12", "http-header-validation",
				"http-custom-header-server-validation"}},
		} {
			t.Run(leg.revision+" "+mode, func(t *testing.T) {
				got := suite(t, "server", leg.revision, nil, "--url", url)
				got.hold(t, leg)
				if len(got.scored.failed) > 0 {
					t.Errorf("these scored scenarios do not pass: %v", got.scored.failed)
				}
			})
		}
	}
}

// TestConformanceClient runs the client leg: the suite plays the upstream, the SDK's conformance client or one of ours
// drives the gateway, and what the suite judges is what the gateway says to it. Of what is scored nothing is left out.
func TestConformanceClient(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{role + "=" + suiteClient, "PEERS_DRAWBRIDGE=" + drawbridge, "PEERS_DRIVEN=" + driven,
		"PEERS_TURNS=" + t.TempDir()}
	more := []string{"json-schema-2020-12-preservation", "auth/client-credentials-basic", "auth/client-credentials-jwt",
		"auth/enterprise-managed-authorization", "auth/wif-jwt-bearer"}
	for _, leg := range []leg{{"2025-11-25", 18, more}, {"2026-07-28", 32, more}} {
		t.Run(leg.revision, func(t *testing.T) {
			got := suite(t, "client", leg.revision, env, "--command", self)
			got.hold(t, leg)
			for _, name := range slices.Concat(got.scored.failed, got.others.failed) {
				if why, ok := left(name); ok {
					t.Logf("left: %s: %s", name, why)
				} else {
					t.Errorf("%s does not pass", name)
				}
			}
		})
	}
}

// left says of a scenario of an extension why it is not held. docs/protocol.md says the same to users.
func left(scenario string) (why string, ok bool) {
	why, ok = map[string]string{
		"auth/dpop":       "tokens bound to a key (RFC 9449): neither the SDK nor golang.org/x/oauth2 has them",
		"auth/dpop-nonce": "tokens bound to a key (RFC 9449): neither the SDK nor golang.org/x/oauth2 has them",
	}[scenario]
	return why, ok
}

// A report is what one run of the suite says.
type report struct {
	scored, others tally
	// complaints are the checks that failed or warned, a line each, but for what comes later.
	complaints []string
}

type tally struct{ passed, failed []string }

// later says of a scenario that it is somebody else's to hold: the SDK's server, which is the upstream here, has no
// tasks.
func later(scenario string) bool { return strings.HasPrefix(scenario, "tasks-") }

// hold fails the test where a leg has other scenarios than it should, or one of those that are not scored does not
// pass.
func (r report) hold(t *testing.T, leg leg) {
	t.Helper()
	t.Logf("scored: %d of %d pass\nothers that pass: %v\nothers that do not: %v\nwhat was not in order:\n%s",
		len(r.scored.passed), leg.scored, r.others.passed, r.others.failed, strings.Join(r.complaints, "\n"))
	if n := len(r.scored.passed) + len(r.scored.failed); n != leg.scored {
		t.Errorf("%d scenarios are scored, want %d", n, leg.scored)
	}
	for _, name := range leg.more {
		if !slices.Contains(r.others.passed, name) {
			t.Errorf("%s does not pass", name)
		}
	}
}

// suite runs one leg of the suite. Its own records stay under .cache.
func suite(t *testing.T, side, revision string, env []string, args ...string) report {
	t.Helper()
	records, err := filepath.Abs(filepath.Join("..", "..", ".cache", "conform", side+"-"+revision))
	if err == nil {
		err = errors.Join(os.RemoveAll(records), os.MkdirAll(records, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx := limit(t, 5*time.Minute)
	cmd := exec.CommandContext(ctx, node, append([]string{module(t, "@modelcontextprotocol/conformance/dist/index.js"),
		side, "--requirements", revision, "-o", records}, args...)...)
	cmd.Dir, cmd.WaitDelay, cmd.Env = t.TempDir(), time.Second, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if ctx.Err() == context.DeadlineExceeded {
		t.Fatalf("the suite did not end:\n%s", out)
	}
	_, summary, ok := strings.Cut(string(out), "SUMMARY ===\n")
	if !ok {
		t.Fatalf("the suite printed no summary: %v\n%s", err, out)
	}
	r := scores(summary)
	r.complaints = complaints(t, records)
	if err != nil && len(r.scored.failed) == 0 {
		t.Errorf("the suite says that a scored scenario failed: %v; its records are in %s", err, records)
	}
	return r
}

var (
	scenarioLine = regexp.MustCompile(`(?m)^([✓✗]) ([a-z0-9_/-]+): (\d+) passed, (\d+) failed`)
	unscoredLine = regexp.MustCompile(`(?m)^  ([✓✗]) ([a-z0-9_/-]+) \(`)
)

// scores divides a summary into the scenarios that count and the others. One of which nothing was checked did not pass.
func scores(summary string) (r report) {
	var unscored []string
	for _, m := range unscoredLine.FindAllStringSubmatch(summary, -1) {
		unscored = append(unscored, m[2])
	}
	for _, m := range scenarioLine.FindAllStringSubmatch(summary, -1) {
		tally := &r.scored
		if slices.Contains(unscored, m[2]) {
			tally = &r.others
		}
		if m[1] == "✓" && m[3] != "0" && m[4] == "0" {
			tally.passed = append(tally.passed, m[2])
		} else {
			tally.failed = append(tally.failed, m[2])
		}
	}
	return r
}

// complaints reads the suite's records.
func complaints(t *testing.T, records string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(records, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "checks.json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var checks []struct{ ID, Status, Description, ErrorMessage string }
		if err := json.Unmarshal(text, &checks); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		scenario, _ := filepath.Rel(records, filepath.Dir(path))
		scenario = strings.TrimPrefix(timestamp.ReplaceAllString(scenario, ""), "server-")
		if _, isLeft := left(scenario); isLeft || later(scenario) {
			return nil
		}
		for _, c := range checks {
			if c.Status == "FAILURE" || c.Status == "WARNING" {
				lines = append(lines, fmt.Sprintf("%s %s %s: %s %s", c.Status, scenario, c.ID, c.Description,
					c.ErrorMessage))
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return lines
}

// timestamp is what the suite adds to the names of its records.
var timestamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)
