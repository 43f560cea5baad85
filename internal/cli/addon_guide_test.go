package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestTheGuideToAddonsHasTheCodeThatIsRun compares the first addon of docs/addons.md with the one that the script addons
// runs.
func TestTheGuideToAddonsHasTheCodeThatIsRun(t *testing.T) {
	root := filepath.Join("..", "..")
	guide, err := os.ReadFile(filepath.Join(root, "docs", "addons.md"))
	if err != nil {
		t.Fatal(err)
	}
	script, err := txtar.ParseFile(filepath.Join(root, "testdata", "scripts", "addons.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, f := range script.Files {
		if strings.HasPrefix(f.Name, "no-push.") {
			compared++
			if !strings.Contains(string(guide), "\n"+string(f.Data)+"```\n") {
				t.Errorf("the guide has no code block with the file %s", f.Name)
			}
		}
	}
	if compared != 2 {
		t.Errorf("%d files compared; want the manifest and the program", compared)
	}
}
