//go:build bench

package bench

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/drawbridge-mcp/drawbridge/"

// The calls of the shorter and of the longer run. The difference belongs to calls alone: what starts and ends is in
// both.
const fewCalls, manyCalls = 20, 120

// objectPass is the function that reads a JSON object once from end to end.
const objectPass = "internal/rawjson.ScanObject"

// composition holds the packages that put the program together. A call passes through none of their functions.
var composition = []string{"gateway", "internal/admin", "internal/cli", "cmd/drawbridge"}

// TestCallPath holds what one tools/call passes through to testdata/callpath.txt: a client of the stateful protocol on
// stdio, a server of the stateless one on stdio. With UPDATE=1 it writes the file.
func TestCallPath(t *testing.T) {
	program := filepath.Join(t.TempDir(), "drawbridge")
	build := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+module+"...", "-o", program,
		module+"cmd/drawbridge")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build with counters: %v\n%s", err, out)
	}
	few, many := entriesAfter(t, program, fewCalls), entriesAfter(t, program, manyCalls)
	perCall := map[string]float64{}
	for name, n := range many {
		if each := float64(n-few[name]) / (manyCalls - fewCalls); each >= 0.5 {
			perCall[name] = each
		}
	}
	got := describePath(perCall)
	t.Logf("\n%s", got)
	golden := filepath.Join("testdata", "callpath.txt")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the path of a call changed: look at it, then run with UPDATE=1 (-want +got):\n%s", diff)
	}
}

// describePath lists the packages of a call, and counts what the bars of the architecture are about.
func describePath(perCall map[string]float64) string {
	var packages, climbs []string
	passes := 0.0
	for name, n := range perCall {
		pkg := name[:strings.LastIndex(name, ".")]
		if i := strings.Index(path.Base(name), "."); i >= 0 {
			pkg = path.Join(path.Dir(name), path.Base(name)[:i])
		}
		if name == objectPass {
			passes = n
		}
		if !slices.Contains(packages, pkg) {
			packages = append(packages, pkg)
		}
		if slices.Contains(composition, pkg) {
			climbs = append(climbs, name)
		}
	}
	slices.Sort(packages)
	slices.Sort(climbs)
	var b strings.Builder
	fmt.Fprintf(&b, "packages: %d\n", len(packages))
	for _, pkg := range packages {
		fmt.Fprintf(&b, "  %s\n", pkg)
	}
	fmt.Fprintf(&b, "passes over a JSON object: %.0f\n", passes)
	fmt.Fprintf(&b, "functions of the packages that compose the program: %d\n", len(climbs))
	for _, name := range climbs {
		fmt.Fprintf(&b, "  %s\n", name)
	}
	return b.String()
}

// entriesAfter returns how often each function of the program was entered in a process that made that many calls.
func entriesAfter(t *testing.T, program string, calls int) map[string]int {
	t.Helper()
	counters := t.TempDir()
	config, store := configure(t, onStdio("up", self(t)))
	cmd := serve(config, store)
	cmd.Path, cmd.Args[0] = program, program
	cmd.Env = append(cmd.Env, "GOCOVERDIR="+counters)
	p := start(t, cmd)
	c := &stdioClient{in: p.in, out: p.out}
	hello := request{"initialize", "", []byte(`,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`), []byte(`"protocolVersion"`)}
	if _, err := c.call(hello); err != nil {
		t.Fatal(err)
	}
	if _, err := c.in.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	r := small("up__").legacy()
	mounted(t, c, r)
	for range calls {
		if _, err := c.call(r); err != nil {
			t.Fatal(err)
		}
	}
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("end: %v", err)
	}
	profile := filepath.Join(t.TempDir(), "profile")
	convert := exec.Command("go", "tool", "covdata", "textfmt", "-i="+counters, "-o="+profile)
	if out, err := convert.CombinedOutput(); err != nil {
		t.Fatalf("read counters: %v\n%s", err, out)
	}
	return readEntries(t, profile)
}

// readEntries returns the count of the first block of each function in a profile, by DIR.NAME of the function.
func readEntries(t *testing.T, profile string) map[string]int {
	t.Helper()
	f, err := os.Open(profile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first := map[string]string{} // file:line.column of a body's opening brace -> function
	read := map[string]bool{}
	entries := map[string]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		block, rest, ok := strings.Cut(strings.TrimPrefix(lines.Text(), module), ",")
		name, _, isBlock := strings.Cut(block, ":")
		if !ok || !isBlock {
			continue
		}
		if !read[name] {
			read[name] = true
			noteFunctions(t, name, first)
		}
		count, err := strconv.Atoi(rest[strings.LastIndexByte(rest, ' ')+1:])
		if err != nil {
			t.Fatal(err)
		}
		if function := first[block]; function != "" {
			entries[function] += count
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return entries
}

// noteFunctions notes where the bodies of a file's functions begin.
func noteFunctions(t *testing.T, name string, first map[string]string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, filepath.Join("..", "..", filepath.FromSlash(name)), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		full := fn.Name.Name
		if fn.Recv != nil {
			full = receiverName(fn.Recv.List[0].Type) + "." + full
		}
		at := fset.Position(fn.Body.Lbrace)
		first[fmt.Sprintf("%s:%d.%d", name, at.Line, at.Column)] = path.Dir(name) + "." + full
	}
}

func receiverName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiverName(t.X)
	case *ast.IndexExpr:
		return receiverName(t.X)
	case *ast.IndexListExpr:
		return receiverName(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}
