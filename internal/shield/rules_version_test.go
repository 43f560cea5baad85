package shield_test

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

var update = flag.Bool("update", false, "write the name of the rules anew")

// TestRulesHaveANameOfTheirOwn fails where the rules changed and their name did not: what older rules made of
// definitions would go on being shown.
func TestRulesHaveANameOfTheirOwn(t *testing.T) {
	want := digest(t)
	if strings.HasPrefix(shield.RulesVersion(), want+" ") {
		return
	}
	if !*update {
		t.Fatalf("the rules changed: run go test ./internal/shield -run Rules -update (%s, want %s)",
			shield.RulesVersion(), want)
	}
	source, err := os.ReadFile("rules_version.go")
	if err != nil {
		t.Fatal(err)
	}
	source = regexp.MustCompile(`const rulesDigest = "[^"]*"`).ReplaceAll(source,
		[]byte(`const rulesDigest = "`+want+`"`))
	if err := os.WriteFile("rules_version.go", source, 0o644); err != nil {
		t.Fatal(err)
	}
}

// digest is that of all that decides what becomes of a definition.
func digest(t *testing.T) string {
	files := []string{"shield.go", "truncate.go", "check_definition.go"}
	for _, pattern := range []string{"../injection/*.go", "../injection/*.txt", "../injection/*.bin"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, slices.DeleteFunc(more, func(f string) bool {
			return strings.HasSuffix(f,
				"_test.go")
		})...)
	}
	h := sha256.New()
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		h.Write([]byte(file))
		h.Write(source)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}
