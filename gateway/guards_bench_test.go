//go:build !nomcp

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
)

// settled are settings of a benchmark, and whether results are fenced: guards off, those that no one turned off, all
// of them.
var settled = []struct {
	name, text string
	fence      bool
}{
	{"off", "[audit]\nenabled = false\n[mcp.shield]\nenabled = false\n[tools]\nmax_identical_errors = \"unlimited\"\n",
		false},
	{"usual", "", false},
	{"audit", "[mcp.shield]\nenabled = false\n[tools]\nmax_identical_errors = \"unlimited\"\n", false},
	{"rules", "[audit]\nenabled = false\n[mcp.shield]\nenabled = false\n[tools]\nmax_identical_errors = \"unlimited\"\n" + manyRules(), false},
	{"fence", "[audit]\nenabled = false\n[tools]\nmax_identical_errors = \"unlimited\"\n", true},
	{"all", "[tools]\nmax_identical_calls = 10000000\n" + manyRules(), true},
}

func manyRules() string {
	var b strings.Builder
	b.WriteString("[tools.policy]\ndefault_effect = \"allow\"\n")
	for n := range 18 {
		fmt.Fprintf(&b, "[[tools.policy.rules]]\neffect = \"deny\"\nservers = [\"server%d\"]\ntools = [\"delete_*\", \"drop_*\"]\n", n)
	}
	b.WriteString("[[tools.policy.rules]]\neffect = \"deny\"\npaths = [\"/etc/**\", \"~/.ssh/**\"]\n")
	b.WriteString("[[tools.policy.rules]]\neffect = \"deny\"\nwhen = 'has(args.text) && args.text.startsWith(\"rm \") && caller.principal != \"root\"'\n")
	return b.String()
}

// BenchmarkGuards is what a small call takes within us except for the server, in a loop, and where all that processors
// remember is gone before each call ("cold", the median): as it is for a gateway that is called now and then, beside
// other programs.
func BenchmarkGuards(b *testing.B) {
	for _, s := range settled {
		b.Run(s.name, func(b *testing.B) { guarded(b, s.text, s.fence) })
	}
}

func guarded(b *testing.B, settings string, fence bool) {
	home := b.TempDir()
	file := filepath.Join(home, "drawbridge", "drawbridge.toml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		b.Fatal(err)
	}
	for path, text := range map[string]string{file: settings,
		filepath.Join(home, "mcp.json"): `{"servers":{"up":{"command":"no-such-command"}}}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	lookup := func(name string) (string, bool) {
		if name == "HOME" || name == "XDG_CONFIG_HOME" || name == "XDG_STATE_HOME" {
			return home, true
		}
		return "", false
	}
	g, err := Open(b.Context(), Config{Dir: home, Paths: []string{filepath.Join(home, "mcp.json")},
		Store: filepath.Join(home, "x.db"), LookupEnv: lookup, OnDemand: true})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	ctx, stop := context.WithCancel(b.Context())
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	defer func() { stop(); <-ran }()
	d, err := deck.New(b.Context(), quiet{g}, deck.Options{
		Audit: g.shared.auditRecorder(), Spotlight: g.spotlightFilter().Selects,
		Inspect: g.shared.vetted.sanitiser.SanitiseText,
		Guards: guards.All(guards.Dependencies{
			Rules: g.ruleGuard, OwnFiles: &g.fileGuard, Limiter: g.shared.callLimiter,
			ServerRate: g.serverTable.Rate,
		}),
	})
	if err != nil {
		b.Fatal(err)
	}
	members := g.deckMembers()
	for i := range members {
		members[i].Spotlight = &fence
		l := drawbridge.Listing{ListedAt: time.Now(), Server: members[i].ID, ConfigHash: members[i].ConfigHash,
			Tools: []json.RawMessage{json.RawMessage(
				`{"name":"echo","description":"Answers with its text","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}`)}}
		members[i].Remembered = &deck.RememberedListing{Listing: l, Vetted: deck.ShowAll(l)}
	}
	if err := d.Configure(b.Context(), members); err != nil {
		b.Fatal(err)
	}
	caller := g.Owner()
	caller.Kind, caller.Client, caller.Session = drawbridge.External, json.RawMessage(`{"name":"bench","version":"1"}`),
		"a session"
	call := drawbridge.Call{Caller: caller, Params: json.RawMessage(
		`{"_meta":{"progressToken":1},"name":"up__echo","arguments":{"text":"` +
			strings.Repeat("0123456789abcdef", 4) + `"}}`)}
	do := func() {
		if _, err := d.Call(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		do()
	}
	b.StopTimer()
	took := make([]float64, 400)
	other := make([]byte, 8<<20)
	for i := range took {
		for j := 0; j < len(other); j += 64 {
			other[j]++
		}
		began := time.Now()
		do()
		took[i] = float64(time.Since(began).Nanoseconds())
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "cold-ns")
	b.ReportMetric(took[len(took)/10], "cold-p10-ns")
}

// quiet is an upstream that answers at once, and tells the gateway how calls end.
type quiet struct{ g *Gateway }

func (q quiet) Do(_ context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error) {
	result := drawbridge.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"` +
		strings.Repeat("0123456789abcdef", 4) + `"}]}`)}
	q.g.shared.callLimiter.CallEnded(id, call, result, nil)
	q.g.serverTrust.CallEnded(id, call, result, nil)
	return result, nil
}

func (quiet) Watch(context.Context, drawbridge.ServerID, drawbridge.WatchSet) error { return nil }
func (quiet) SetLogLevel(context.Context, string, string) error                     { return nil }
func (quiet) ForwardNotification(context.Context, string, string, json.RawMessage)  {}
func (quiet) EndSession(string)                                                     {}

var _ deck.Upstream = quiet{}
