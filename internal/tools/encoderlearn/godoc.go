package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
)

// readGo returns an entry for each exported function and method of a Go module that has a doc comment. The entries
// are in the order of the files.
func readGo(dir string) ([]entry, error) {
	var out []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipDir[d.Name()]:
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil // a file that does not parse is skipped
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Doc != nil && f.Name.IsExported() {
				out = append(out, function(file.Name.Name, f))
			}
		}
		return nil
	})
	return out, err
}

var skipDir = map[string]bool{"testdata": true, "vendor": true, "internal": true, "profiles": true, "preview": true,
	"mgmt": false, "examples": true, "example": true}

// function returns the entry of a Go function. The parameters of the entry are the names and the exported types in
// the function's signature. The server of the entry is the package name and the type of the receiver.
func function(pkg string, f *ast.FuncDecl) entry {
	e := entry{Server: pkg, Name: f.Name.Name}
	if f.Recv != nil && len(f.Recv.List) == 1 {
		e.Server += " " + typeName(f.Recv.List[0].Type)
	}
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			if len(name.Name) > 2 && name.Name != "ctx" && name.Name != "opts" {
				e.Params = append(e.Params, name.Name)
			}
		}
		if name := typeName(field.Type); ast.IsExported(name) && name != "Context" {
			e.Params = append(e.Params, name)
		}
	}
	e.Text = strings.TrimSpace(f.Doc.Text())
	if rest, ok := strings.CutPrefix(e.Text, f.Name.Name); ok {
		e.Text = strings.TrimLeft(rest, ": ")
	}
	return e
}

// typeName returns the name of a type without its package, pointer, slice and type arguments: "T" for "*p.T".
func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.ArrayType:
		return typeName(t.Elt)
	case *ast.IndexExpr:
		return typeName(t.X)
	}
	return ""
}
