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

	"github.com/drawbridge-mcp/drawbridge/shield"
)

var update = flag.Bool("update", false, "write the name of the rules anew")

// TestRulesHaveANameOfTheirOwn fails where the rules changed and their name did not: what older rules made of definitions
// would go on being shown.
func TestRulesHaveANameOfTheirOwn(t *testing.T) {
	want := digest(t)
	if strings.HasPrefix(shield.Rules(), want+" ") {
		return
	}
	if !*update {
		t.Fatalf("the rules changed: run go test ./shield -run Rules -update (%s, want %s)", shield.Rules(), want)
	}
	source, err := os.ReadFile("version.go")
	if err != nil {
		t.Fatal(err)
	}
	source = regexp.MustCompile(`const version = "[^"]*"`).ReplaceAll(source, []byte(`const version = "`+want+`"`))
	if err := os.WriteFile("version.go", source, 0o644); err != nil {
		t.Fatal(err)
	}
}

// digest is that of all that decides what becomes of a definition.
func digest(t *testing.T) string {
	files := []string{"shield.go", "shorten.go", "walk.go"}
	for _, pattern := range []string{"words/*.go", "coded/*.go", "scale/*.go", "tree/*.go", "words/*.txt", "scale/*.bin"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, slices.DeleteFunc(more, func(f string) bool { return strings.HasSuffix(f, "_test.go") })...)
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
