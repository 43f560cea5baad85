package drawbridge_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/drawbridge-mcp/drawbridge"

// layers holds the layer of each package. A package imports packages of its own layer and of lower ones. A package that
// is not in the table may not exist; packages that are not built yet have their layer already.
var layers = map[string]int{
	".": 1,

	"internal/rawjson":    2,
	"internal/safetext":   2,
	"internal/lazyregexp": 2,
	"internal/mcp":        2,

	"ledger":             3,
	"internal/workspace": 3,
	"internal/audit":     3,
	"internal/policy":    3,
	"internal/trust":     3,
	"internal/shield":    3,
	"internal/index":     3,
	"internal/naming":    3,
	"internal/flow":      3,
	"internal/textfile":  3,

	"config":                4,
	"llm":                   4,
	"internal/configfile":   4,
	"internal/clientconfig": 4,
	"internal/launch":       4,
	"internal/secrets":      4,
	"internal/privatefile":  4,
	"internal/process":      4,
	"internal/confine":      4,
	"internal/safehttp":     4,
	"internal/notify":       4,
	"internal/transport":    4,
	"internal/oauth":        4,
	"internal/bearer":       4,
	"internal/recordlog":    4,
	"internal/backup":       4,
	"internal/store":        4,
	"internal/telemetry":    4,
	"internal/addons":       4,
	"internal/webpage":      4,
	"internal/mcpregistry":  4,

	"deck":                5,
	"cards":               5,
	"sandbox":             5,
	"internal/upstream":   5,
	"internal/interop":    5,
	"internal/vetting":    5,
	"internal/guards":     5,
	"internal/toolsearch": 5,
	"internal/boundary":   5,
	"internal/undo":       5,
	"internal/jobs":       5,

	"agent":             6,
	"internal/server":   6,
	"internal/agentrpc": 6,

	"gateway":          7,
	"internal/command": 7,
	"internal/hub":     7,
	"internal/admin":   7,

	"internal/cli":   8,
	"internal/tui":   8,
	"internal/web":   8,
	"cmd/drawbridge": 8,

	"sandbox/wasmtime": 8, // a module of its own
}

// testOnly are the suites, the servers for tests, the examples and the programs about the code. The program imports none of them.
var testOnly = []string{"mcptest", "internal/storetest", "internal/oauthtest", "internal/tools", "test", "examples"}

// pure is the layer of rules: they decide, and touch neither network, files nor databases.
const pure = 3

// impure are the packages that the layer of rules may not import.
var impure = []string{"net", "net/http", "os", "os/exec", "database/sql"}

// never holds what the layers would allow and the architecture does not.
var never = []struct {
	packages, imports []string
	because           string
}{
	{
		[]string{"internal/server", "agent", "internal/agentrpc"},
		[]string{"internal/upstream", "cards", "internal/store", "internal/workspace"},
		"every call of an agent, a client, the sandbox or a screen goes through deck.Call",
	},
	{
		[]string{"agent"},
		without(layered(), ".", "agent"),
		"it declares the Tools, Model and History it needs, so that a script can test it",
	},
	{
		[]string{"cards"},
		[]string{"internal/store", "internal/upstream", "internal/boundary"},
		"a card reads and prepares; it cannot write to the workspace",
	},
	{
		[]string{"internal/cli", "internal/tui", "internal/web"},
		[]string{"internal/store", "internal/upstream"},
		"commands and screens print; admin decides",
	},
	{
		without(layered(), "internal/process", "sandbox", "cards", "internal/secrets", "internal/hub", "internal/cli",
			"internal/notify"),
		[]string{"os/exec"},
		"processes start in few places, each of which ends them",
	},
}

// goroutineOwners are the packages that may start goroutines: each waits for those it starts.
var goroutineOwners = []string{
	"config", "agent", "sandbox", "internal/upstream", "internal/transport", "internal/process", "internal/interop",
	"internal/oauth",
	"internal/server", "internal/bearer", "internal/hub", "internal/store", "internal/recordlog",
	"internal/tui", "internal/web", "internal/jobs", "internal/agentrpc",
}

func TestEveryPackageHasALayer(t *testing.T) {
	for _, p := range packages(t) {
		if _, ok := layers[p.dir]; !ok && !isTestOnly(p.dir) {
			t.Errorf("%s has no layer: add it to the table, or move its code to a package that is there", p.dir)
		}
	}
}

func TestLayers(t *testing.T) {
	for _, p := range packages(t) {
		if isTestOnly(p.dir) {
			continue
		}
		for _, imp := range p.imports {
			if reason := forbidden(p.dir, imp.path); reason != "" {
				t.Errorf("%s: %s imports %s: %s", imp.at, p.dir, imp.path, reason)
			}
		}
	}
}

// TestLayerRules shows the rules at work, so that a change which allows everything is noticed.
func TestLayerRules(t *testing.T) {
	for _, tt := range []struct {
		dir, imports string
		ok           bool
	}{
		{"deck", module + "/ledger", true},
		{"deck", module, true},
		{"ledger", module + "/deck", false},
		{"config", module + "/internal/mcp", true},
		{"internal/upstream", module + "/internal/transport", true},
		{"internal/transport", module + "/internal/upstream", false},
		{"internal/upstream", module + "/internal/interop", true},
		{"internal/server", module + "/deck", true},
		{"internal/server", module + "/internal/store", false},
		{"internal/server", module + "/internal/upstream", false},
		{"internal/cli", module + "/internal/store", false},
		{"agent", module + "/deck", false},
		{"agent", module, true},
		{"agent", module + "/internal/safetext", false},
		{"ledger", "os", false},
		{"ledger", "net/netip", true},
		{"internal/process", "os/exec", true},
		{"gateway", "os/exec", false},
		{"gateway", module + "/mcptest", false},
		{"gateway", module + "/internal/tools/shape", false},
		{"gateway", module + "/util", false},
	} {
		if reason := forbidden(tt.dir, tt.imports); (reason == "") != tt.ok {
			t.Errorf("%s imports %s: %q, want allowed: %v", tt.dir, tt.imports, reason, tt.ok)
		}
	}
}

func TestEveryPackageIsDocumented(t *testing.T) {
	for _, p := range packages(t) {
		if !p.documented {
			t.Errorf("%s has no package comment", p.dir)
		}
	}
}

func TestOnlyOwnersStartGoroutines(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(goroutineOwners, p.dir) || isTestOnly(p.dir) {
			continue
		}
		for _, at := range p.goStatements {
			t.Errorf("%s: a go statement in %s, which owns no goroutine", at, p.dir)
		}
	}
}

// TestScriptsRunInWorkerProcesses holds that no part of the program runs scripts in its own process: that is for programs
// of others.
func TestScriptsRunInWorkerProcesses(t *testing.T) {
	for _, p := range packages(t) {
		for _, at := range p.localScripts {
			if p.dir != "sandbox" {
				t.Errorf("%s: sandbox.Options.InProcess is not for this program", at)
			}
		}
	}
}

func TestNoInitNoSleepNoWideInterface(t *testing.T) {
	for _, p := range packages(t) {
		for _, at := range p.inits {
			t.Errorf("%s: an init function", at)
		}
		for _, at := range p.sleeps {
			t.Errorf("%s: time.Sleep in a test: use a channel or testing/synctest", at)
		}
		for _, at := range p.wide {
			t.Errorf("%s: an interface with more than 5 methods", at)
		}
	}
}

// TestModuleOfWasmtime holds the module of the other engine to that of the product: the product does not name Wasmtime, and
// both have the same versions.
func TestModuleOfWasmtime(t *testing.T) {
	versions := func(file string) map[string]string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if file == "go.mod" && strings.Contains(strings.ToLower(string(text)), "wasmtime") {
			t.Error("go.mod names Wasmtime")
		}
		all := map[string]string{}
		for _, row := range regexp.MustCompile(`(?m)^\s+(\S+) (v\S+)`).FindAllStringSubmatch(string(text), -1) {
			all[row[1]] = row[2]
		}
		return all
	}
	ours, same := versions("go.mod"), 0
	for path, version := range versions("sandbox/wasmtime/go.mod") {
		if want := ours[path]; want == version {
			same++
		} else if want != "" {
			t.Errorf("sandbox/wasmtime/go.mod has %s %s, go.mod has %s: run go mod tidy in sandbox/wasmtime", path, version, want)
		}
	}
	if same == 0 {
		t.Error("no module is required by both")
	}
}

// forbidden returns the reason why the package in dir may not import a package, or "".
func forbidden(dir, imported string) string {
	target, ours := ownDir(imported)
	if !ours {
		target = imported
	}
	if reason := againstLayers(dir, target, ours); reason != "" {
		return reason
	}
	for _, rule := range never {
		if slices.Contains(rule.packages, dir) && slices.Contains(rule.imports, target) {
			return rule.because
		}
	}
	return ""
}

// againstLayers returns the reason why the layers forbid an import, or "".
func againstLayers(dir, target string, ours bool) string {
	own := layers[dir]
	if !ours {
		if own == pure && slices.Contains(impure, target) {
			return "rules are pure: tested by table and fuzz"
		}
		return ""
	}
	if isTestOnly(target) {
		return "it is for tests only"
	}
	layer, ok := layers[target]
	switch {
	case !ok:
		return "it has no layer"
	case layer > own:
		return fmt.Sprintf("layer %d may not import layer %d", own, layer)
	}
	return ""
}

// ownDir returns the directory of an imported package and reports whether it is one of the module.
func ownDir(imported string) (dir string, ours bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func isTestOnly(dir string) bool {
	return slices.ContainsFunc(testOnly, func(t string) bool { return dir == t || strings.HasPrefix(dir, t+"/") })
}

func layered() []string {
	all := make([]string, 0, len(layers))
	for dir := range layers {
		all = append(all, dir)
	}
	return all
}

func without(all []string, not ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return slices.Contains(not, s) })
}

// parsedPackage holds what the files of a package contain, whatever their build constraints are.
type parsedPackage struct {
	dir          string
	documented   bool
	imports      []parsedImport
	goStatements []string // positions, tests left out
	inits        []string
	sleeps       []string // positions in tests
	wide         []string
	localScripts []string // positions of sandbox.Options.InProcess, tests left out
}

type parsedImport struct{ path, at string }

// packages parses every Go file of the module in this process: the go command would see one platform only.
func packages(t *testing.T) []*parsedPackage {
	t.Helper()
	byDir := map[string]*parsedPackage{}
	fset := token.NewFileSet()
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && holdsNoCode(d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = &parsedPackage{dir: dir}
		}
		byDir[dir].addFile(fset, name, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*parsedPackage, 0, len(byDir))
	for _, p := range byDir {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *parsedPackage) int { return strings.Compare(a.dir, b.dir) })
	return all
}

// holdsNoCode reports whether directories of this name hold no code of the module.
func holdsNoCode(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") ||
		slices.Contains([]string{"testdata", "node_modules", "vendor", "bin"}, name)
}

func (p *parsedPackage) addFile(fset *token.FileSet, name string, file *ast.File) {
	test := strings.HasSuffix(name, "_test.go")
	p.documented = p.documented || file.Doc != nil
	at := func(n ast.Node) string { return fset.Position(n.Pos()).String() }
	for _, spec := range file.Imports {
		if s, err := strconv.Unquote(spec.Path.Value); err == nil && !test {
			p.imports = append(p.imports, parsedImport{s, at(spec)})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !test {
				p.goStatements = append(p.goStatements, at(n))
			}
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil {
				p.inits = append(p.inits, at(n))
			}
		case *ast.Ident:
			if n.Name == "InProcess" && !test {
				p.localScripts = append(p.localScripts, at(n))
			}
		case *ast.InterfaceType:
			if n.Methods.NumFields() > 5 {
				p.wide = append(p.wide, at(n))
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && test && x.Name == "time" && n.Sel.Name == "Sleep" {
				p.sleeps = append(p.sleeps, at(n))
			}
		}
		return true
	})
}
