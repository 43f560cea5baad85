package main

import (
	"cmp"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A pkg is one directory with Go files.
type pkg struct {
	code       int // lines with code, without tests
	documented bool
	main       bool
	library    bool            // it has files other than tests
	imports    map[string]bool // directories of this module that its files import, without the imports of tests
}

// notProgram are directories that do not belong to the program: they contain packages for tests and development, which
// the program does not import, and the module of another engine.
var notProgram = []string{"mcptest", "internal/storetest", "internal/oauthtest", "internal/tools", "test", "examples",
	"sandbox/wasmtime"}

// isProgram reports whether the packages in dir belong to the program.
func isProgram(dir string) bool {
	return !slices.ContainsFunc(notProgram, func(d string) bool { return dir == d || strings.HasPrefix(dir, d+"/") })
}

// isPublic reports whether programs outside this module may import the package in dir.
func isPublic(dir string) bool {
	return !slices.Contains(strings.Split(dir, "/"), "internal")
}

// addImports adds the packages of this module that a file imports to p.imports.
func (p *pkg) addImports(module string, file *ast.File) {
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		switch rest, ok := strings.CutPrefix(name, module); {
		case !ok:
		case rest == "":
			p.imports["."] = true
		case rest[0] == '/':
			p.imports[rest[1:]] = true
		}
	}
}

// programPackages returns the directories of the program's packages, sorted.
func (s *shape) programPackages() []string {
	return s.packagesWhere(func(dir string, p *pkg) bool { return isProgram(dir) && p.library })
}

// importable returns the directories of the packages that a program outside this module may import, sorted.
func (s *shape) importable() []string {
	return s.packagesWhere(func(dir string, p *pkg) bool { return isPublic(dir) && p.library && !p.main })
}

func (s *shape) packagesWhere(match func(dir string, p *pkg) bool) []string {
	var dirs []string
	for dir, p := range s.byDir {
		if match(dir, p) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// libraries returns in all the directories of the program's packages that other packages can import. In once it returns
// the directories that exactly one package of the program imports.
func (s *shape) libraries() (all, once []string) {
	importers := map[string]int{}
	for dir, p := range s.byDir {
		if !isProgram(dir) {
			continue
		}
		for imported := range p.imports {
			importers[imported]++
		}
	}
	for _, dir := range s.programPackages() {
		if s.byDir[dir].main {
			continue
		}
		all = append(all, dir)
		if importers[dir] == 1 {
			once = append(once, dir)
		}
	}
	return all, once
}

// programLines returns the number of lines of code of the program, without blank lines, comments and tests.
func (s *shape) programLines() (total int) {
	for _, dir := range s.programPackages() {
		total += s.byDir[dir].code
	}
	return total
}

// largestPackages returns the directories of the program's packages with more than most lines of code, largest first.
func (s *shape) largestPackages(most int) []string {
	all := slices.Collect(maps.Keys(s.byDir))
	all = slices.DeleteFunc(all, func(dir string) bool { return !isProgram(dir) || s.byDir[dir].code <= most })
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(s.byDir[b].code, s.byDir[a].code) })
	return all
}

// moduleOf returns the module path that a go.mod file declares, or "".
func moduleOf(gomod []byte) string {
	for line := range strings.Lines(string(gomod)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			return path.Clean(strings.TrimSpace(name))
		}
	}
	return ""
}
