package shield_test

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
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

// notRules are the files of the package that do not decide what becomes of a definition.
var notRules = []string{
	"change.go", "check_question.go", "diff_words.go", "doc.go", "host.go", "hosts.go", "pin.go", "pin_lock.go",
	"pinned_parts.go", "rules_version.go", "same_reading.go",
}

// digest returns the digest of every file that decides what becomes of a definition. Comments do not count: a plainer
// sentence leaves the rules as they are.
func digest(t *testing.T) string {
	var files []string
	for _, pattern := range []string{"*.go", "*.txt", "*.bin"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, slices.DeleteFunc(more, func(f string) bool {
			return strings.HasSuffix(f, "_test.go") || slices.Contains(notRules, f)
		})...)
	}
	h := sha256.New()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		h.Write([]byte(file))
		if strings.HasSuffix(file, ".go") {
			writeCode(h, data)
		} else {
			h.Write(data)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// writeCode writes the tokens of Go source without its comments.
func writeCode(w io.Writer, source []byte) {
	fset := token.NewFileSet()
	var tokens scanner.Scanner
	tokens.Init(fset.AddFile("", fset.Base(), len(source)), source, nil, 0)
	for {
		_, tok, literal := tokens.Scan()
		if tok == token.EOF {
			return
		}
		fmt.Fprintf(w, "%s %q\n", tok, literal)
	}
}
