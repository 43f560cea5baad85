package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A point is a measured function, file or interface: its size and its place in the code.
type point struct {
	size  int
	where string
}

// A shape holds all measured values.
type shape struct {
	functions, files, interfaces []point
	inits, sleeps                []string
	suppressions, unreasoned     []string
	exported                     int
	undocumented                 []string
	errors                       int
	badErrors                    []string
	byDir                        map[string]*pkg
	module                       string
	phrases                      phrases
	lines, overlong              int
	backgrounds                  []string // calls of context.Background in the program, outside of package main
	plainFuncs, methods          oneWords
}

// oneWords holds the number of all functions of a kind, and the number of those functions whose name is one word.
type oneWords struct{ all, one int }

// measure reads every Go file under fsys and returns the measured values.
func measure(fsys fs.FS) (*shape, error) {
	s := &shape{byDir: map[string]*pkg{}}
	if gomod, err := fs.ReadFile(fsys, "go.mod"); err == nil {
		s.module = moduleOf(gomod)
	}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && skipped(d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		source, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		return s.read(name, source)
	})
	return s, err
}

func skipped(dir string) bool {
	return strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_") ||
		slices.Contains([]string{"testdata", "node_modules", "vendor"}, dir)
}

func (s *shape) read(name string, source []byte) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	f := &reading{shape: s, fset: fset, name: name, file: file, test: strings.HasSuffix(name, "_test.go")}
	p := s.byDir[path.Dir(name)]
	if p == nil {
		p = &pkg{imports: map[string]bool{}}
		s.byDir[path.Dir(name)] = p
	}
	p.documented = p.documented || file.Doc != nil
	if !f.test {
		p.code += codeLines(source)
		p.library = true
		p.main = file.Name.Name == "main"
		p.addImports(s.module, file)
	}
	s.longLines(source)
	f.language()
	s.files = append(s.files, point{bytes.Count(source, []byte("\n")), name})
	f.suppressions()
	if !f.test && file.Name.Name != "main" {
		f.exported()
	}
	ast.Inspect(file, f.node)
	return nil
}

// codeLines returns the number of lines that contain code, not only blanks and comments.
func codeLines(source []byte) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(source))
	var sc scanner.Scanner
	sc.Init(file, source, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, literal := sc.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(pos)
		for i := range 1 + strings.Count(literal, "\n") {
			lines[first+i] = true
		}
	}
}

// A reading is a parsed file whose measured values are added to a shape.
type reading struct {
	*shape
	fset *token.FileSet
	name string
	file *ast.File
	test bool
}

func (f *reading) line(n ast.Node) int { return f.fset.Position(n.Pos()).Line }

func (f *reading) at(n ast.Node) string { return fmt.Sprintf("%s:%d", f.name, f.line(n)) }

func (f *reading) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		lines := f.fset.Position(n.End()).Line - f.line(n) + 1
		f.functions = append(f.functions, point{lines, f.at(n) + " " + n.Name.Name})
		f.countName(n)
		if n.Name.Name == "init" && n.Recv == nil {
			f.inits = append(f.inits, f.at(n))
		}
	case *ast.InterfaceType:
		f.interfaces = append(f.interfaces, point{n.Methods.NumFields(), f.at(n)})
	case *ast.CallExpr:
		f.call(n)
	}
	return true
}

// countName adds a function to f.plainFuncs, or to f.methods if it is a method. It ignores tests, and functions that
// are not part of the program.
func (f *reading) countName(n *ast.FuncDecl) {
	if f.test || !isProgram(path.Dir(f.name)) {
		return
	}
	count := &f.plainFuncs
	if n.Recv != nil {
		count = &f.methods
	}
	count.all++
	if isOneWord(n.Name.Name) {
		count.one++
	}
}

func (f *reading) call(n *ast.CallExpr) {
	sel, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return
	}
	switch x.Name + "." + sel.Sel.Name {
	case "context.Background":
		if !f.test && isProgram(path.Dir(f.name)) && f.file.Name.Name != "main" {
			f.backgrounds = append(f.backgrounds, f.at(n))
		}
	case "time.Sleep":
		if f.test {
			f.sleeps = append(f.sleeps, f.at(n))
		}
	case "errors.New", "fmt.Errorf":
		if !f.test && len(n.Args) > 0 {
			f.errorString(n.Args[0])
		}
	}
}

// errorString examines the argument arg of a call that makes an error. If the text begins with a string literal, the
// literal is counted. If the literal begins with "failed" or a similar word, its place is added to f.badErrors.
func (f *reading) errorString(arg ast.Expr) {
	for {
		sum, ok := arg.(*ast.BinaryExpr)
		if !ok {
			break
		}
		arg = sum.X
	}
	lit, ok := arg.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return
	}
	f.errors++
	for _, bad := range []string{"failed", "error", "unable", "could not", "cannot"} {
		if strings.HasPrefix(strings.ToLower(text), bad) {
			f.badErrors = append(f.badErrors, f.at(lit))
			return
		}
	}
}

// suppressions adds the comments that suppress a linter's warning to the list of suppressions, and those without a
// reason to f.unreasoned. The reason must follow the name of the check in a "//lint:" comment, and a second "//" in a
// "//nolint" comment.
func (f *reading) suppressions() {
	for _, group := range f.file.Comments {
		for _, c := range group.List {
			var reasoned bool
			switch {
			case strings.HasPrefix(c.Text, "//lint:"):
				reasoned = len(strings.Fields(c.Text)) > 2
			case strings.HasPrefix(c.Text, "//nolint"):
				reasoned = strings.Contains(c.Text[2:], "//")
			default:
				continue
			}
			f.shape.suppressions = append(f.shape.suppressions, f.at(c))
			if !reasoned {
				f.unreasoned = append(f.unreasoned, f.at(c))
			}
		}
	}
}

// exported counts the exported names of a file: functions, methods of exported types, types, constants and variables.
// It adds the names without a comment to f.undocumented. A comment above a group of constants or variables counts for
// each of them.
func (f *reading) exported() {
	for _, decl := range f.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && receiverExported(d) {
				f.export(d.Name, d.Doc != nil)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					f.export(s.Name, s.Doc != nil || s.Comment != nil || d.Doc != nil && !d.Lparen.IsValid())
				case *ast.ValueSpec:
					for _, name := range s.Names {
						f.export(name, s.Doc != nil || s.Comment != nil || d.Doc != nil)
					}
				}
			}
		}
	}
}

func (f *reading) export(name *ast.Ident, documented bool) {
	if !name.IsExported() {
		return
	}
	f.shape.exported++
	if !documented {
		f.undocumented = append(f.undocumented, f.at(name)+" "+name.Name)
	}
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// silent returns the directories of the packages without a package comment, sorted.
func (s *shape) silent() []string {
	var all []string
	for dir, p := range s.byDir {
		if !p.documented {
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return all
}
