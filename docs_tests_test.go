package drawbridge_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A namedTest is a test that a guide names, in a line that names its directory before it: `test/attack`
// `TestSmuggling`. Row is a row of its table, as in `TestSmuggling/JS-1`; it may be empty.
type namedTest struct{ dir, test, row string }

var testName = regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w*(/[A-Z]+-\d+)?$`)

// testsIn returns the tests that a Markdown text names. One without a directory has none.
func testsIn(text string) []namedTest {
	var all []namedTest
	for line := range strings.Lines(text) {
		dir := ""
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			switch info, err := os.Stat(m[1]); {
			case testName.MatchString(m[1]):
				test, row, _ := strings.Cut(m[1], "/")
				all = append(all, namedTest{dir, test, row})
			case err == nil && info.IsDir():
				dir = m[1]
			}
		}
	}
	return all
}

func TestTestsIn(t *testing.T) {
	got := testsIn("`TestLost` | `deck` `TestFold`, `TestSmuggling/JS-1` `Tested` | `docs` `FuzzX`\nnothing\n")
	want := []namedTest{{"", "TestLost", ""}, {"deck", "TestFold", ""}, {"deck", "TestSmuggling", "JS-1"},
		{"docs", "FuzzX", ""}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(namedTest{})); diff != "" {
		t.Error(diff)
	}
}

// TestGuidesNameTestsThatExist holds the guides to the tests: where one is named, it can be run.
func TestGuidesNameTestsThatExist(t *testing.T) {
	for _, guide := range guides(t) {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, n := range testsIn(string(text)) {
			code := testCode(t, n.dir)
			switch {
			case n.dir == "":
				t.Errorf("%s: %s stands behind no directory", guide, n.test)
			case !strings.Contains(code, "\nfunc "+n.test+"("):
				t.Errorf("%s: %s has no %s", guide, n.dir, n.test)
			case n.row != "" && !strings.Contains(code, `"`+n.row+` `):
				t.Errorf("%s: %s of %s has no row %s", guide, n.test, n.dir, n.row)
			}
		}
	}
}

// TestSecurityNamesItsRows holds docs/security.md to the matrices: a row that is tested by its name stands in it.
func TestSecurityNamesItsRows(t *testing.T) {
	text, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, m := range regexp.MustCompile(`\{(?:name: )?"([A-Z]+-[1-9]\d*) `).FindAllStringSubmatch(
		testCode(t, "test/attack"),
		-1) {
		if row := m[1]; !strings.Contains(string(text), row) && !slices.Contains(missing, row) {
			missing = append(missing, row)
		}
	}
	if len(missing) > 0 {
		t.Errorf("docs/security.md does not name %v", missing)
	}
}

// testCode returns the text of all tests in a directory.
func testCode(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestArchitectureNamesEveryPackage holds the table of ARCHITECTURE.md to the tree, in both directions, and its layers
// to the table of layers.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n## Packages\n")
	section, _, ok := strings.Cut(rest, "\n## ")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no section Packages")
	}
	got := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\w+) \\| \\S").FindAllStringSubmatch(section, -1) {
		got[row[1]] = row[2]
	}
	want := map[string]string{}
	for _, p := range packages(t) {
		switch {
		case p.dir == ".":
			want["drawbridge"] = strconv.Itoa(layers[p.dir])
		case isTestOnly(p.dir):
			want[p.dir] = "tests"
		default:
			want[p.dir] = strconv.Itoa(layers[p.dir])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the packages of ARCHITECTURE.md (-tree +page):\n%s", diff)
	}
}
