package gateway

import (
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestTheBridgeCanBeLeftOut checks that every file which imports the bridge is left out of a build without MCP.
func TestTheBridgeCanBeLeftOut(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		source, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), source, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range file.Imports {
			if !strings.Contains(imported.Path.Value, "/internal/upstream") {
				continue
			}
			found = true
			if !strings.HasPrefix(string(source), "//go:build !nomcp\n") {
				t.Errorf("%s imports %s in every build", f.Name(), imported.Path.Value)
			}
		}
	}
	if !found {
		t.Error("no file imports internal/upstream")
	}
}
