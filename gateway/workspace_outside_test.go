package gateway

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOtherModulesCannotImportTheBoundary builds programs of another module that try to write around the boundary: they
// are refused by the compiler.
func TestOtherModulesCannotImportTheBoundary(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, requirements, _ := strings.Cut(string(mod), "\n")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for name, body := range map[string]string{
		"proof":    `import "github.com/drawbridge-mcp/drawbridge/internal/boundary"; var _ = boundary.Prove`,
		"write":    `import "github.com/drawbridge-mcp/drawbridge/internal/workspace"; var _ = workspace.NewWrite`,
		"store":    `import "github.com/drawbridge-mcp/drawbridge/internal/store"; var _ = store.OpenWorkspace`,
		"commands": `import "github.com/drawbridge-mcp/drawbridge/internal/command"; var _ = command.Caller`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{
				"go.mod": "module outside.example/program\n" + requirements + "\nrequire github.com/drawbridge-mcp/drawbridge v0.0.0\n" +
					"replace github.com/drawbridge-mcp/drawbridge => " + root + "\n",
				"main.go": "package main\n\n" + body + "\n\nfunc main() {}\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(ctx, "go", "vet", "-mod=mod", ".")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "use of internal package") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
