//go:build bench

package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

var roundsFlag = flag.Int("rounds", 15, "how many interleaved rounds are measured")

// How much is measured; a short run is a smoke test of the measuring.
func rounds() int {
	if testing.Short() {
		return 2
	}
	return *roundsFlag
}

func calls(full int) int {
	if testing.Short() {
		return max(full/20, min(full, 5))
	}
	return full
}

// rest waits so long before something is measured that processes are to come to rest.
func rest(d time.Duration) {
	if testing.Short() {
		d /= 5
	}
	<-time.After(d)
}

// TestNumbers prints the table, and fails where a bar of old is missed. A bar that is new is printed only, until it is
// met. In a short run the timed rows are printed only.
func TestNumbers(t *testing.T) {
	parts := []struct {
		name    string
		measure func(*testing.T) []line
	}{
		{"LD-1 latency", latency},
		{"latency legacy", legacyLatency},
		{"guards", guards},
		{"LD-6 large", largeResult},
		{"throughput", throughput},
		{"throughput legacy", legacyThroughput},
		{"audit", auditCosts},
		{"audit log", auditLog},
		{"audit size", auditSize},
		{"parked", parked},
		{"shim", shim},
		{"ten serves", tenServes},
		{"memory", serverMemory},
		{"dual", dual},
		{"garbage", garbage},
		{"list", longList},
		{"idle", idle},
		{"LD-2 start", deadStart},
		{"cold list", coldList},
		{"first call", firstCall},
		{"terminal start", terminalStart},
		{"events", eventAnswers},
		{"hang", hang},
		{"fidelity", fidelity},
		{"LD-7 hostile", hostile},
		{"LD-8 leaks", leaks},
	}
	var table []line
	finished := 0
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			table = append(table, part.measure(t)...)
			finished++
		})
	}
	printTable(fmt.Sprintf("%s, %d rounds; µs are medians", machine(), rounds()), table)
	for _, l := range table {
		if l.fails() {
			t.Errorf("missed: %s", l.what)
		}
	}
	if finished == len(parts) {
		holdReadme(t, table)
	}
}

func printTable(title string, table []line) {
	fmt.Printf("\n%s\n", title)
	aligned := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer aligned.Flush()
	fmt.Fprint(aligned, heading)
	for _, l := range table {
		l.write(aligned)
	}
}

// machine says where the numbers are from, without names.
func machine() string {
	said := fmt.Sprintf("%s, %s/%s, %d processors", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		said += fmt.Sprintf(", %.0f GB", kilobytes(text, "MemTotal:")/(1<<20))
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		version, _, _ := strings.Cut(strings.TrimSpace(string(text)), "-")
		said += ", Linux " + version
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		said += ", load " + strings.Fields(string(text))[0]
	}
	return said
}

// readmeRows is how many rows the README has.
const readmeRows = 6

// holdReadme holds the table in the README to the names and the bars of the rows that were printed.
func holdReadme(t *testing.T, table []line) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	printed := map[string]string{}
	for _, l := range table {
		printed[l.what] = l.target()
	}
	_, section, _ := strings.Cut(string(text), "\n## What it costs\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := 0
	for row := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		if len(cells) != 3 || !strings.HasPrefix(row, "| ") || strings.TrimSpace(cells[0]) == "what" {
			continue
		}
		rows++
		what, target := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[2])
		if bar, ok := printed[what]; !ok || bar != target {
			t.Errorf("README has the row %q with the target %q; make bench prints %q for it", what, target, bar)
		}
	}
	if rows != readmeRows {
		t.Errorf("README has %d rows of numbers, want %d", rows, readmeRows)
	}
}

// ways are the contenders for the same calls, each with a process of its own and its number of clients.
type ways struct {
	directHTTP, naiveHTTP, reverseHTTP contender
	viaStdio, viaHTTP                  contender // HTTP → Drawbridge → the server on stdio, or on HTTP
	directStdio, stdioStdio            contender
	relayBytes, relayInline, relayHand contender
}

// prepare starts all of them, for requests made with make, which takes the prefix that tools have behind Drawbridge.
// Clients on pipes are left out where there is more than one.
func prepare(t testing.TB, clients int, old bool, make func(prefix string) request) *ways {
	t.Helper()
	target := start(t, role(t, "upstream", "http"))
	url := target.url(t)
	serveHTTP := func(row server) *benchProcess {
		config, store := configure(t, row)
		return start(t, serve(config, store, "--http", "127.0.0.1:0"))
	}
	config, store := configure(t, onStdio("up", self(t)))
	a := arena{t, clients, old, make}
	w := &ways{
		directHTTP:  a.http("direct HTTP", nil, url, ""),
		naiveHTTP:   a.listening("naive SDK proxy", start(t, role(t, "naive", self(t))), ""),
		reverseHTTP: a.listening(reverseProxy, start(t, role(t, "reverse", url)), ""),
		viaStdio:    a.listening("HTTP → Drawbridge → stdio", serveHTTP(onStdio("up", self(t))), "up__"),
		viaHTTP: a.listening("HTTP → Drawbridge → HTTP", serveHTTP(server{Name: "net", URL: url, Type: "http"}),
			"net__"),
	}
	if clients > 1 {
		return w
	}
	w.directStdio = a.child("direct stdio", start(t, role(t, "upstream")), "")
	w.directStdio.p = nil
	w.relayBytes = a.child(relayBytes, start(t, role(t, "relay", "bytes", self(t))), "")
	w.relayInline = a.child(relayInline, start(t, role(t, "relay", "inline", self(t))), "")
	w.relayHand = a.child(relayHands, start(t, role(t, "relay", "hands", self(t))), "")
	w.stdioStdio = a.child("stdio → Drawbridge → stdio", start(t, serve(config, store)), "up__")
	return w
}

// An arena opens clients on contenders, of the legacy generation if it is old.
type arena struct {
	t       testing.TB
	clients int
	old     bool
	make    func(prefix string) request
}

func (a arena) request(prefix string) request {
	if r := a.make(prefix); !a.old {
		return r
	}
	return a.make(prefix).legacy()
}

func (a arena) listening(name string, p *benchProcess, prefix string) contender {
	a.t.Helper()
	return a.http(name, p, p.url(a.t), prefix)
}

func (a arena) http(name string, p *benchProcess, url, prefix string) contender {
	a.t.Helper()
	c := contender{name: name, request: a.request(prefix), p: p}
	for range a.clients {
		one := connect(a.t, url)
		if a.old {
			if err := one.open(); err != nil {
				a.t.Fatalf("%s: %v", name, err)
			}
		}
		c.clients = append(c.clients, one)
	}
	mounted(a.t, c.clients[0], c.request)
	return c
}

func (a arena) child(name string, p *benchProcess, prefix string) contender {
	a.t.Helper()
	one := &stdioClient{in: p.in, out: p.out}
	if a.old {
		if err := one.open(`{}`); err != nil {
			a.t.Fatalf("%s: %v", name, err)
		}
	}
	c := contender{name: name, clients: []client{one}, request: a.request(prefix), p: p}
	mounted(a.t, one, c.request)
	return c
}
