package secrets

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// names is a keychain.
type names map[string]string

func (n names) Get(name string) ([]byte, error) {
	value, ok := n[name]
	if !ok {
		return nil, errors.New("nothing has that name")
	}
	return []byte(value), nil
}

func TestReferences(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"plain": "s3cret", "line": "s3cret\n", "dos": "s3cret\r\n\r\n", "lines": " s3cret\nmore \n", "empty": "", "blank": "\n\n",
		"full": strings.Repeat("s", maxValue), "over": strings.Repeat("s", maxValue+1),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := Resolver{Keeper: names{"one": "s3cret\n", "none": ""}}
	for name, tt := range map[string]struct {
		kind        Kind
		text        string
		value, fail string // the directory as $DIR
	}{
		"a file":             {File, "$DIR/plain", "s3cret", ""},
		"a line":             {File, "$DIR/line", "s3cret", ""},
		"a line of Windows":  {File, "$DIR/dos", "s3cret", ""},
		"lines":              {File, "$DIR/lines", " s3cret\nmore ", ""},
		"a large file":       {File, "$DIR/full", files["full"], ""},
		"a larger file":      {File, "$DIR/over", "", "the file $DIR/over: it is larger than 1 MiB"},
		"an empty file":      {File, "$DIR/empty", "", "the file $DIR/empty: it is empty"},
		"a file of ends":     {File, "$DIR/blank", "", "the file $DIR/blank: it is empty"},
		"no file":            {File, "$DIR/gone", "", "the file $DIR/gone is not there"},
		"a directory":        {File, "$DIR", "", "the file $DIR: it is no regular file"},
		"a name":             {Kept, "one", "s3cret\n", ""},
		"no name":            {Kept, "two", "", `find "two" in the keychain: nothing has that name`},
		"nothing by a name":  {Kept, "none", "", `what the keychain has as "none" is empty`},
		"another kind":       {"vault", "x", "", `nothing here knows a reference of the kind "vault"`},
		"a command":          {Command, "echo s3cret", "s3cret", ""},
		"a command's end":    {Command, "exit 3", "", "the command ended with exit status 3"},
		"a file's bad name":  {File, "a\x00b", "", "the file a\x00b: invalid argument"},
		"a file's long name": {File, "$DIR/" + strings.Repeat("x", 5000), "", "the file $DIR/" + strings.Repeat("x", 5000) + ": file name too long"},
	} {
		t.Run(name, func(t *testing.T) {
			value, err := r.Value(t.Context(), tt.kind, strings.ReplaceAll(tt.text, "$DIR", dir), os.Environ())
			said := ""
			if err != nil {
				said = strings.ReplaceAll(err.Error(), dir, "$DIR")
			}
			if value != tt.value || said != tt.fail && runtime.GOOS == "linux" || (said == "") != (tt.fail == "") {
				t.Errorf("got %.20q, %q, want %.20q, %q", value, said, tt.value, tt.fail)
			}
		})
	}
	if _, err := (&Resolver{}).Value(t.Context(), Kept, "one", nil); err == nil || err.Error() != `there is no keychain to find "one" in` {
		t.Errorf("without a keychain: %v", err)
	}
}

// TestAPipeIsNotRead: whoever opens one waits for the other end.
func TestAPipeIsNotRead(t *testing.T) {
	if _, err := os.Stat("/dev/null"); err != nil {
		t.Skip("no devices here")
	}
	if err := CheckFile("/dev/null"); err == nil || err.Error() != "the file /dev/null: it is no regular file" {
		t.Errorf("got %v", err)
	}
}
