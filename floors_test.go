package drawbridge_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/drawbridge-mcp/drawbridge"

// floors has the floor of every room. A package imports only from lower floors. A room that is not built yet has its
// floor already; a package that has none may not exist.
var floors = map[string]int{
	".": 0,

	"internal/safetext": 0,

	"config":    1,
	"secrets":   1,
	"ledger":    1,
	"audit":     1,
	"shield":    1,
	"policy":    1,
	"limits":    1,
	"trust":     1,
	"index":     1,
	"workspace": 1,
	"wire":      1,

	"internal/atonce": 1,
	"internal/stdin":  1,

	"boundary": 2,
	"bridge":   2,
	"sandbox":  2,
	"model":    2,
	"store":    2,

	"cards":   3,
	"deck":    4,
	"server":  5,
	"session": 5,
	"gateway": 6,

	"hub":          7,
	"roster":       7,
	"internal/tui": 7,
	"internal/web": 7,

	"internal/cli":   8,
	"cmd/drawbridge": 9,
}

// landings are the inner rooms that other inner rooms of the same house may import. They import none of them.
var landings = []string{"bridge/confine", "bridge/egress", "bridge/link", "bridge/proof", "config/disk", "config/doc", "config/refer", "deck/label", "deck/mishap", "gateway/vetting", "index/words", "internal/cli/arguments", "internal/cli/change", "internal/cli/manners", "internal/cli/rows", "internal/cli/terminal", "shield/coded", "shield/scale", "shield/tree", "store/postgres", "store/vector"}

// tools stand beside the house: tests and programs about the code, servers for the tests of others. What is in the house imports none of them.
var tools = []string{"fakemcp", "internal/mcptest", "internal/mcptest/idp", "internal/mcptest/cmd/idp", "internal/storetest", "internal/shape", "internal/shieldscore", "internal/shieldlearn", "internal/retrievalscore", "bench", "peers", "hosts", "siege", "internal/mcptest/letters", "internal/encoderlearn"}

// never has what the floors would let through and the architecture does not. A room's inner rooms are bound as it is,
// and to name a room names its inner rooms.
var never = []struct {
	rooms, imports []string
	because        string
}{
	{
		[]string{"server", "session"},
		[]string{"bridge", "cards", "store", "workspace"},
		"every call, from agent, outside client, sandbox and screen, goes through deck.Call",
	},
	{
		[]string{"session"},
		without(rooms(), ".", "model", "session"),
		"it declares the Tools, Model and History it needs, so that a script can test it",
	},
	{
		[]string{"cards"},
		[]string{"store", "bridge", "boundary"},
		"a card reads and prepares; nothing it holds can write to the workspace",
	},
	{
		[]string{"internal/tui", "internal/web"},
		[]string{"store", "bridge"},
		"a screen declares the two or three methods it shows",
	},
	{
		[]string{"ledger", "audit", "shield", "policy", "index", "workspace", "limits", "trust", "internal/safetext"},
		[]string{"net", "net/http", "os", "os/exec", "database/sql"},
		"rules are pure: tested by table and fuzz",
	},
	{
		without(rooms(), "bridge", "sandbox", "cards", "secrets", "hub", "internal/cli"),
		[]string{"os/exec"},
		"processes start in few places, each of which ends them",
	},
}

// owners are the rooms that may write "go": each waits for what it starts.
var owners = []string{"bridge", "server", "session", "hub", "config", "store", "sandbox", "internal/tui", "internal/web"}

func TestEveryPackageHasAFloor(t *testing.T) {
	for _, p := range packages(t) {
		if _, _, ok := floorOf(p.dir); !ok && !slices.Contains(tools, p.dir) {
			t.Errorf("%s has no floor: give it one in the table, or a better home", p.dir)
		}
	}
}

func TestFloors(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(tools, p.dir) {
			continue
		}
		for _, imp := range p.imports {
			if why := mayImport(p.dir, imp.path); why != "" {
				t.Errorf("%s: %s imports %s: %s", imp.at, p.dir, imp.path, why)
			}
		}
	}
}

// TestFloorRules shows the rules at work, so that a change which lets everything through is noticed.
func TestFloorRules(t *testing.T) {
	for _, tt := range []struct {
		room, imports string
		ok            bool
	}{
		{"deck", module + "/ledger", true},
		{"deck", module, true},
		{"ledger", module + "/deck", false},
		{"config", module + "/wire", false},
		{"bridge", module + "/bridge/link", true},
		{"bridge/link", module + "/wire", true},
		{"bridge/link", module + "/bridge", false},
		{"bridge/remote", module + "/bridge/link", true},
		{"deck/skill", module + "/deck/label", true},
		{"bridge/remote", module + "/bridge/process", false},
		{"gateway", module + "/bridge/link", false},
		{"store", module + "/bridge/link", false},
		{"server/legacy", module + "/deck", true},
		{"server/legacy", module + "/store", false},
		{"server", module + "/bridge/link", false},
		{"session", module + "/deck", false},
		{"session", module + "/model", true},
		{"ledger", "os", false},
		{"ledger", "net/netip", true},
		{"bridge/process", "os/exec", true},
		{"gateway", "os/exec", false},
		{"gateway", module + "/internal/mcptest", false},
		{"gateway", module + "/util", false},
	} {
		if why := mayImport(tt.room, tt.imports); (why == "") != tt.ok {
			t.Errorf("%s imports %s: %q, want allowed: %v", tt.room, tt.imports, why, tt.ok)
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
		if ownsGoroutines(p.dir) {
			continue
		}
		for _, at := range p.goes {
			t.Errorf("%s: a go statement in %s, which owns no goroutine", at, p.dir)
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

// mayImport says why room may not import imported, or "".
func mayImport(room, imported string) string {
	dir, ours := ownDir(imported)
	target := imported
	if ours {
		target = dir
		if why := mayReach(room, dir); why != "" {
			return why
		}
	}
	for _, rule := range never {
		if anyWithin(rule.rooms, room) && (slices.Contains(rule.imports, target) || ours && anyWithin(rule.imports, target)) {
			return rule.because
		}
	}
	return ""
}

// mayReach holds the floors. An inner room stands half a floor below its room: above the next floor, and seen by its
// own house only.
func mayReach(room, dir string) string {
	if slices.Contains(tools, dir) {
		return "it is for tests only"
	}
	floor, inner, ok := floorOf(dir)
	if !ok {
		return "it has no floor"
	}
	own, ownInner, _ := floorOf(room)
	house, ownHouse := houseOf(dir), houseOf(room)
	switch {
	case inner && house != ownHouse:
		return "it is an inner room of " + house
	case inner && !ownInner:
		return ""
	case inner && slices.Contains(landings, dir) && !slices.Contains(landings, room):
		return ""
	case inner || floor >= own:
		return fmt.Sprintf("floor %d may not import floor %d", own, floor)
	}
	return ""
}

// floorOf gives the floor of a package's house and whether the package is an inner room of it.
func floorOf(dir string) (floor int, inner, ok bool) {
	house := houseOf(dir)
	floor, ok = floors[house]
	return floor, dir != house, ok
}

// houseOf is the room that dir is, or is within: the longest entry of the table.
func houseOf(dir string) string {
	for d := dir; d != "."; d = path.Dir(d) {
		if _, ok := floors[d]; ok {
			return d
		}
	}
	return dir
}

func ownDir(imported string) (dir string, ours bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func ownsGoroutines(dir string) bool {
	return anyWithin(owners, dir) || slices.Contains(tools, dir)
}

func anyWithin(rooms []string, dir string) bool {
	return slices.ContainsFunc(rooms, func(room string) bool { return dir == room || strings.HasPrefix(dir, room+"/") })
}

func rooms() []string {
	all := make([]string, 0, len(floors))
	for room := range floors {
		all = append(all, room)
	}
	return all
}

func without(all []string, not ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return slices.Contains(not, s) })
}

// A parsed package: what its files say, whatever their build tags are.
type parsed struct {
	dir        string
	documented bool
	imports    []imported
	goes       []string // positions, tests left out
	inits      []string
	sleeps     []string // positions in tests
	wide       []string
}

type imported struct{ path, at string }

// packages parses every Go file of the module in this process: the go command would see one platform only.
func packages(t *testing.T) []*parsed {
	t.Helper()
	byDir := map[string]*parsed{}
	fset := token.NewFileSet()
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && outside(d.Name()):
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
			byDir[dir] = &parsed{dir: dir}
		}
		byDir[dir].read(fset, name, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*parsed, 0, len(byDir))
	for _, p := range byDir {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *parsed) int { return strings.Compare(a.dir, b.dir) })
	return all
}

// outside says whether a directory holds no code of the module.
func outside(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") ||
		slices.Contains([]string{"testdata", "node_modules", "vendor", "bin"}, name)
}

func (p *parsed) read(fset *token.FileSet, name string, file *ast.File) {
	test := strings.HasSuffix(name, "_test.go")
	p.documented = p.documented || file.Doc != nil
	at := func(n ast.Node) string { return fset.Position(n.Pos()).String() }
	for _, spec := range file.Imports {
		if s, err := strconv.Unquote(spec.Path.Value); err == nil && !test {
			p.imports = append(p.imports, imported{s, at(spec)})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !test {
				p.goes = append(p.goes, at(n))
			}
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil {
				p.inits = append(p.inits, at(n))
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
