//go:build bench

package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// auditOff is the settings of Drawbridge without its record.
const auditOff = "[audit]\nenabled = false\n"

// auditRecords is how many records of calls the audit keeps by default.
const auditRecords = 1_000_000

// auditCosts is what the record costs a call: processor time, on minus off in interleaved rounds, and bytes that are
// written.
func auditCosts(t *testing.T) []line {
	up := onStdio("up", self(t))
	on, off := settled(t, "audit on", "", up, false), settled(t, "audit off", auditOff, up, false)
	relay := control(t, false)
	alone := alternating(t, rounds(), calls(500), &on, &off, &relay)
	a := arena{t, callers, false, small}
	serveWith := func(name, settings string) (c contender, store string) {
		config, store := configure(t, up)
		settle(t, config, settings)
		return a.listening(name, start(t, serve(config, store, "--http", "127.0.0.1:0")), "up__"), store
	}
	manyOn, store := serveWith("audit on", "")
	manyOff, _ := serveWith("audit off", auditOff)
	url := start(t, role(t, "upstream", "http")).url(t)
	reverse := a.listening(reverseProxy, start(t, role(t, "reverse", url)), "")
	busy := rates(t, rounds(), max(calls(2000), 2*callers), &manyOn, &manyOff, &reverse)
	wrote, kept := writtenACall(t, &manyOn, filepath.Dir(store), max(calls(20_000), callers))
	bytes := line{what: "audit, bytes written a call, 32 callers", subject: fmt.Sprintf("kept %.2f kB", kept/1000),
		control: "write_bytes of /proc/PID/io", value: wrote / 1000, bar: 2, format: "%.2f kB", timed: true}
	if wrote == 0 {
		bytes.missing = "the system does not count bytes written to this disk"
	}
	return []line{
		alone.auditCPU("audit, CPU a call, on − off, one caller, stdio → stdio", &on, &off),
		busy.auditCPU("audit, CPU a call, on − off, 32 callers, HTTP → stdio", &manyOn, &manyOff),
		bytes,
	}
}

// auditCPU is the difference in processor time between a contender with a record and one without.
func (r readings) auditCPU(what string, on, off *contender) line {
	with, without := r.of(on).cpu, r.of(off).cpu
	l := line{what: what, subject: fmt.Sprintf("on %.0f µs", median(with)), control: fmt.Sprintf("off %.0f µs",
		median(without)), value: median(minus(with, without)), bar: 25, format: "%.0f µs", timed: true, costs: r.costs(on)}
	if len(with) == 0 {
		l.missing = "processor time is not counted on this system"
	}
	return l
}

// writtenACall is how much a call causes to be written to disk, and how much larger its directory is after it.
func writtenACall(t *testing.T, c *contender, dir string, calls int) (wrote, kept float64) {
	t.Helper()
	own, _ := family(c.p.cmd.Process.Pid)
	rest(2 * time.Second) // records that are kept come into the store
	before, had := written(own), size(t, dir)
	if err := c.atOnce(calls); err != nil {
		t.Fatal(err)
	}
	rest(2 * time.Second) // records that are kept come into the store
	return (written(own) - before) / float64(calls), float64(size(t, dir)-had) / float64(calls)
}

// auditLog is how long "audit log --failed" takes with a million records, of which a hundred are of calls that failed.
func auditLog(t *testing.T) []line {
	want := auditRecords
	if testing.Short() {
		want = 4000
	}
	config, store := configure(t)
	settle(t, config, "[deck]\nprofile = \"all\"\n")
	records := fillAudit(t, config, store, want/2)
	if records < want {
		records = fillAudit(t, config, store, want-records) // one record a call
	}
	var took, bare []float64
	for i := range 1 + min(rounds(), 3) {
		began := time.Now()
		out, err := serveless(store, "audit", "log", "--failed", "--mcp", config, "--store", store).Output()
		if err != nil || !strings.Contains(string(out), "no_such_tool") {
			t.Fatalf("audit log --failed: %.500s, %v", out, err)
		}
		if i > 0 { // the first reads the disk
			took = append(took, milliseconds(began)/1000)
		}
		began = time.Now()
		if err := serveless(store, "version").Run(); err != nil {
			t.Fatal(err)
		}
		bare = append(bare, milliseconds(began))
	}
	return []line{{
		what: "audit log --failed, 1,000,000 records", subject: fmt.Sprintf("%d records, store %d MB", records,
			size(t, filepath.Dir(store))>>20),
		control: fmt.Sprintf("drawbridge version %.0f ms", median(bare)), value: median(took), bar: 0.3, format: "%.2f s",
		timed: true,
	}}
}

// serveless is a command of drawbridge with the files of a configuration.
func serveless(store string, args ...string) *exec.Cmd {
	cmd := serve("", store)
	cmd.Args = append(cmd.Args[:1], args...)
	cmd.Env = append(cmd.Env, "DRAWBRIDGE_KEYCHAIN=off")
	return cmd
}

// fillAudit makes calls in a process of its own, and returns how many records the audit then has.
func fillAudit(t *testing.T, config, store string, calls int) (records int) {
	t.Helper()
	cmd := role(t, "fill", config, store, strconv.Itoa(calls))
	cmd.Dir, cmd.Env = filepath.Dir(store), append(serveless(store).Env, roleVariable+"=fill")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("fill the audit: %v\n%.1000s", err, out)
	}
	return auditedRecords(t, config, store)
}

// auditedRecords verifies the audit and returns how many records it has.
func auditedRecords(t *testing.T, config, store string) int {
	t.Helper()
	out, err := serveless(store, "audit", "verify", "--json", "--mcp", config, "--store", store).Output()
	var verified struct{ Records int }
	if failed := json.Unmarshal(out, &verified); failed != nil || verified.Records == 0 {
		t.Fatalf("audit verify: %v, %v\n%.1000s", err, failed, out)
	}
	return verified.Records
}

// auditSize is the size that the record comes to at the default limits, where each call has 100 kB of arguments. Some
// calls are made; what they leave is counted up to the limit.
func auditSize(t *testing.T) []line {
	config, store := configure(t, onStdio("up", self(t)))
	p := start(t, serve(config, store))
	c := p.stdio()
	r := says("up__", strings.Repeat("The parcel is on its way. ", 4000))
	mounted(t, c, r)
	several(t, c, r, calls(2000))
	p.stop() // all records are in the store
	records := auditedRecords(t, config, store)
	kept := float64(size(t, filepath.Dir(store))) / float64(records)
	bound := auditBytes(t)
	total := min(kept*auditRecords, bound)
	return []line{{
		what:    "audit store at the default limits, 100 kB of arguments a call",
		subject: fmt.Sprintf("%.2f kB a record in %d records", kept/1000, records), control: fmt.Sprintf("keep_bytes = %.0f", bound), value: total / 1e9,
		bar: 1, format: "%.2f GB",
	}}
}

// auditBytes is the default of the setting that bounds the record in bytes.
func auditBytes(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### [audit]\n")
	section, _, _ = strings.Cut(section, "\n### ")
	row := regexp.MustCompile("(?m)^\\| `keep_bytes` \\|[^|]*\\| *(\\d+) *\\|")
	found := row.FindStringSubmatch(section)
	if found == nil {
		t.Fatal("docs/configuration.md has no keep_bytes")
	}
	bound, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}
