package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

func TestCheckLocationAccepts(t *testing.T) {
	dir := t.TempDir()
	colon := filepath.Join(dir, "a:b")
	if err := os.Mkdir(colon, 0o700); err != nil {
		t.Skip(err) // Windows
	}
	for location, want := range map[string]string{
		"postgres://u:pw@h/d":           "postgres://u:pw@h/d",
		"POSTGRES://U:Pw@h/D":           "postgres://U:Pw@h/D",
		"PostgreSQL://h/d":              "postgresql://h/d",
		":memory:":                      ":memory:",
		"store.db":                      "store.db",
		"./a:b.db":                      "./a:b.db",
		"C:store.db":                    "C:store.db",
		filepath.Join(dir, "new/s.db"):  filepath.Join(dir, "new/s.db"),
		filepath.Join(colon, "new.db"):  filepath.Join(colon, "new.db"),
		filepath.Join(dir, "12:30.db"):  filepath.Join(dir, "12:30.db"),
		filepath.Join(dir, "50%41?x=1"): filepath.Join(dir, "50%41?x=1"),
	} {
		if got, err := store.CheckLocation(location); got != want || err != nil {
			t.Errorf("%s: %q, %v", location, got, err)
		}
	}
}

// TestNoURLIsAFile has locations that look like URLs be refused, before a directory is made of them, and by an error
// without their password.
func TestNoURLIsAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for location, want := range map[string]string{
		"postgre://u:sekret@db.example/x":               `unknown scheme "postgre"; known are postgres and postgresql`,
		"mysql://u:sekret@db/x":                         `unknown scheme "mysql"; known are postgres and postgresql`,
		"FILE:///tmp/sekret.db":                         `unknown scheme "file"`,
		"u:sekret@h://x":                                "not a URL",
		"a/postgres://u:sekret@h/x":                     "not a URL",
		"://sekret":                                     "not a URL",
		"postgres:/u:sekret@h/x":                        `"postgres:" without "//"`,
		"postgres:u:sekret@h":                           `"postgres:" without "//"`,
		"./postgre:/u:sekret@h/x":                       "colon",
		filepath.Join(here, "postgre:/u:sekret@h/x"):    "colon",
		filepath.Join(here, "new/u:sekret@h/x/store.d"): "colon",
		"host=db user=u password=sekret dbname=x":       "keywords",
		"host=db Password = 'sekret'":                   "keywords",
		"":                                              "no location",
	} {
		_, err := store.Open(t.Context(), location, store.Options{})
		f, _ := errors.AsType[*drawbridge.Fault](err)
		if f == nil || f.Code != drawbridge.InvalidInput || !strings.Contains(f.Error(), want) ||
			!strings.Contains(f.Next, "postgres://") {
			t.Errorf("%s: %v, want %s", location, err, want)
		}
		if strings.Contains(strings.ToLower(err.Error()), "sekret") {
			t.Errorf("%s: the password is in %v", location, err)
		}
	}
	if left, err := os.ReadDir("."); len(left) > 0 || err != nil {
		t.Errorf("%v was made, %v", left, err)
	}
}

func TestSchemeOfVectorsInAnyCase(t *testing.T) {
	for location, want := range map[string]string{
		"POSTGRES://h/d":         "",
		"PostgreSQL://h/d":       "",
		"QDRANT://localhost":     "",
		"Qdrants://k@h":          "",
		"postgre://u:sekret@h/d": `unknown scheme "postgre"; known are postgres, postgresql, qdrant and qdrants`,
		"sekret":                 "not a URL",
		"u:sekret@h://":          "not a URL",
	} {
		v, err := store.OpenVectorStore(location, store.VectorOptions{})
		if err == nil {
			v.Close()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", location, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "sekret") {
			t.Errorf("%s: the password is in %v", location, err)
		}
	}
}
