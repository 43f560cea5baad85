//go:build bench

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	product "github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// TestDeckNumbers prints how long Drawbridge's own tools take, each beside the program that people use for the same, and
// fails where a bar is missed. A row without its program on this machine is left out.
func TestDeckNumbers(t *testing.T) {
	table := deckStart(t) // before the disk has to write many files
	root := sourceTree(t, calls(50_000))
	built, err := deck.Provision(cards.NewCatalogue(), deck.All, deck.Context{Dir: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := built.Close(); err != nil {
			t.Error(err)
		}
	})
	table = append(table, searches(t, root, built.Box())...)
	table = append(table, readOfLargeFile(t, built.Box()["read"]))
	aligned := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer aligned.Flush()
	for _, l := range table {
		l.write(aligned)
		if !l.ok() && !testing.Short() {
			t.Errorf("missed: %s", l.what)
		}
	}
}

// sourceTree writes a tree of files with text like that of programs. Five files have the word RareWordHere.
func sourceTree(t *testing.T, files int) string {
	root := t.TempDir()
	words := strings.Fields("func return if err nil string int value result context package import type struct for range " +
		"map append len error handler request response server client index count offset buffer reader writer close open")
	random := rand.New(rand.NewPCG(1, 2))
	for i := range files {
		var text strings.Builder
		for range 30 + random.IntN(60) {
			for range 3 + random.IntN(6) {
				text.WriteString(words[random.IntN(len(words))] + " ")
			}
			fmt.Fprintf(&text, "%x\n", random.IntN(1<<20))
		}
		if i%(files/5) == 7 {
			text.WriteString("the RareWordHere stands alone 0123456789abcdefq\n")
		}
		dir := filepath.Join(root, fmt.Sprintf("pkg%02d", i%40), fmt.Sprintf("sub%02d", i/40%25))
		name := fmt.Sprintf("file%05d.go", i)
		if i%(files/5) == 7 {
			name = fmt.Sprintf("unusual%05d.go", i)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// searches compares grep and find with ripgrep, fd and find.
func searches(t *testing.T, root string, box map[product.CardName]product.Card) (table []line) {
	for _, s := range []struct {
		what, args string
		card       product.CardName
		bar        float64
		programs   [][]string
	}{
		{"grep: a rare word", `{"pattern":"RareWordHere"}`, "grep", 2, [][]string{{"rg", "-n", "RareWordHere"}}},
		{"grep: a regular expression with a required literal", `{"pattern":"\\w+WordHere\\s+st[a-z]+s"}`, "grep", 3,
			[][]string{{"rg", "-n", `\w+WordHere\s+st[a-z]+s`}}},
		{"grep: a regular expression without", `{"pattern":"[0-9a-f]{16}[p-r]"}`, "grep", 15,
			[][]string{{"rg", "-n", `[0-9a-f]{16}[p-r]`}}},
		{"find: a glob", `{"query":"unusual*.go"}`, "find", 2, [][]string{{"fdfind", "-g", "unusual*.go"},
			{"fd", "-g", "unusual*.go"}, {"find", ".", "-iname", "unusual*.go"}}},
	} {
		for _, argv := range s.programs {
			program, err := exec.LookPath(argv[0])
			if err != nil {
				continue
			}
			var ours, theirs []float64
			for i := range rounds() + 1 {
				one := runCard(t, box[s.card], s.args)
				other := runProgram(t, root, program, argv[1:])
				if i > 0 { // the first round warms the cache
					ours, theirs = append(ours, one), append(theirs, other)
				}
			}
			table = append(table, line{what: s.what, subject: fmt.Sprintf("%.0f ms", median(ours)),
				control: fmt.Sprintf("%s %.0f ms", argv[0], median(theirs)), value: median(ours) / median(theirs), bar: s.bar,
				format: "%.2f ×", timed: true})
		}
	}
	return table
}

// runCard calls a card, which must find something in five files, and returns the milliseconds that it took.
func runCard(t *testing.T, card product.Card, args string) float64 {
	t.Helper()
	begun := time.Now()
	result, err := card.Run(t.Context(), product.Call{Params: rawjson.Apply(nil, rawjson.Put([]byte(args), "arguments"))})
	took := time.Since(begun)
	if err != nil || strings.Count(result.Text(), "unusual") != 5 {
		t.Fatalf("%s: %s, %v", args, result.Raw, err)
	}
	return float64(took) / float64(time.Millisecond)
}

// runProgram runs a program with the same task.
func runProgram(t *testing.T, dir, program string, args []string) float64 {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	begun := time.Now()
	out, err := cmd.Output()
	took := time.Since(begun)
	if err != nil || strings.Count(string(out), "unusual") != 5 {
		t.Fatalf("%s %q: %.300s, %v", program, args, out, err)
	}
	return float64(took) / float64(time.Millisecond)
}

// readOfLargeFile reads 2,000 lines at line 1,000,000 of a file of 100 MB.
func readOfLargeFile(t *testing.T, card product.Card) line {
	path := filepath.Join(t.TempDir(), "large.txt")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := 1; i <= 1_010_000; i++ {
		fmt.Fprintf(w, "line %d %s\n", i, strings.Repeat("x", 90))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	args, err := json.Marshal(map[string]any{"path": path, "offset": 1_000_000, "limit": 2000})
	if err != nil {
		t.Fatal(err)
	}
	var took []float64
	for range rounds() + 1 {
		begun := time.Now()
		result, err := card.Run(t.Context(), product.Call{Params: rawjson.Apply(nil, rawjson.Put(args, "arguments"))})
		took = append(took, float64(time.Since(begun))/float64(time.Millisecond))
		if err != nil || !strings.Contains(result.Text(), "line 1000000 ") {
			t.Fatalf("%.300s, %v", result.Raw, err)
		}
	}
	return line{what: "read: 2,000 lines of 100 MB at line 1,000,000", subject: "in process", control: "none",
		value: median(took[1:]), bar: 150, format: "%.0f ms", timed: true}
}

// deckStart compares the time to the first answer, and to the list of tools, of a program that has own tools for clients
// and of one that has none.
func deckStart(t *testing.T) []line {
	start := func(settings string) func() (first, list float64) {
		home := t.TempDir()
		dir := filepath.Join(home, ".config", "drawbridge")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"drawbridge.toml": settings, "mcp.json": `{"servers":{}}`} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return func() (first, list float64) { return timeToAnswers(t, home) }
	}
	with, without := start("[deck]\nprofile = \"all\"\n"), start("[deck]\nprofile = \"none\"\n")
	var first, list, base []float64
	for i := range 2*rounds() + 1 {
		var firstWith, listWith, firstWithout, listWithout float64
		if i%2 == 0 { // neither is always the second
			firstWith, listWith = with()
			firstWithout, listWithout = without()
		} else {
			firstWithout, listWithout = without()
			firstWith, listWith = with()
		}
		if i > 0 {
			first, list = append(first, firstWith-firstWithout), append(list, listWith-listWithout)
			base = append(base, firstWithout)
		}
	}
	control := fmt.Sprintf("without %.1f ms", median(base))
	return []line{
		{what: "start of serve: more until the first answer", subject: "own tools for clients", control: control,
			value: median(first), bar: 1, format: "%.2f ms", timed: true},
		{what: "start of serve: more until the list, which has 19 tools more", subject: "own tools for clients", control: control,
			value: median(list), bar: 5, format: "%.2f ms", timed: true},
	}
}

// timeToAnswers starts the program and returns the milliseconds until its first answer and until its list of tools.
func timeToAnswers(t *testing.T, home string) (first, list float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, drawbridge, "serve")
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "DRAWBRIDGE_KEYCHAIN=off"}
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 4<<20)
	since := func() float64 { return float64(time.Since(begun)) / float64(time.Millisecond) }
	for lines.Scan() {
		switch {
		case strings.Contains(lines.Text(), `"id":1,`):
			first = since()
		case strings.Contains(lines.Text(), `"id":2,`):
			list = since()
		}
	}
	if err := cmd.Wait(); err != nil || first == 0 || list == 0 {
		t.Fatalf("serve: %v, answers after %.2f and %.2f ms", err, first, list)
	}
	return first, list
}
