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
		"plain": "s3cret", "line": "s3cret\n", "dos": "s3cret\r\n\r\n", "lines": " s3cret\nmore \n", "empty": "",
		"blank": "\n\n",
		"full":  strings.Repeat("s", maxValue), "over": strings.Repeat("s", maxValue+1),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := Resolver{Keychain: names{"one": "s3cret\n", "none": ""}}
	for name, tt := range map[string]struct {
		kind        ReferenceKind
		text        string
		value, fail string // the directory as $DIR
	}{
		"a file":            {FileReference, "$DIR/plain", "s3cret", ""},
		"a line":            {FileReference, "$DIR/line", "s3cret", ""},
		"a line of Windows": {FileReference, "$DIR/dos", "s3cret", ""},
		"lines":             {FileReference, "$DIR/lines", " s3cret\nmore ", ""},
		"a large file":      {FileReference, "$DIR/full", files["full"], ""},
		"a larger file":     {FileReference, "$DIR/over", "", "the file $DIR/over: it is larger than 1 MiB"},
		"an empty file":     {FileReference, "$DIR/empty", "", "the file $DIR/empty: it is empty"},
		"a file of ends":    {FileReference, "$DIR/blank", "", "the file $DIR/blank: it is empty"},
		"no file":           {FileReference, "$DIR/gone", "", "the file $DIR/gone is not there"},
		"a directory":       {FileReference, "$DIR", "", "the file $DIR: it is not a regular file"},
		"a name":            {KeychainReference, "one", "s3cret\n", ""},
		"no name":           {KeychainReference, "two", "", `find "two" in the keychain: nothing has that name`},
		"nothing by a name": {KeychainReference, "none", "", `what the keychain has as "none" is empty`},
		"another kind":      {"vault", "x", "", `nothing here knows a reference of the kind "vault"`},
		"a command":         {CommandReference, "echo s3cret", "s3cret", ""},
		"a command's end":   {CommandReference, "exit 3", "", "the command ended with exit status 3"},
		"a file's bad name": {FileReference, "a\x00b", "", "the file a\x00b: invalid argument"},
		"a file's long name": {FileReference, "$DIR/" + strings.Repeat("x", 5000), "", "the file $DIR/" +
			strings.Repeat("x", 5000) + ": file name too long"},
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
	if _, err := (&Resolver{}).Value(t.Context(), KeychainReference, "one", nil); err == nil ||
		err.Error() != `find "one" in the keychain: no keychain is available` {
		t.Errorf("without a keychain: %v", err)
	}
}

// TestAPipeIsNotRead: whoever opens one waits for the other end.
func TestAPipeIsNotRead(t *testing.T) {
	if _, err := os.Stat("/dev/null"); err != nil {
		t.Skip("no devices here")
	}
	if err := CheckFile("/dev/null"); err == nil || err.Error() != "the file /dev/null: it is not a regular file" {
		t.Errorf("got %v", err)
	}
}
