package textfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// onDisk opens files of this machine.
type onDisk struct{}

func (onDisk) Open(path string) (fs.File, error) { return os.Open(path) }

// tree writes files below a directory. A name that ends with "/" is a directory.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		}
		if err == nil && !strings.HasSuffix(name, "/") {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func paths(t testing.TB, root string, o ListOptions) (out []string) {
	t.Helper()
	l, err := List(t.Context(), onDisk{}, root, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range l.Files {
		name := f.Path
		if f.Dir {
			name += "/"
		}
		out = append(out, name)
	}
	return out
}

func TestList(t *testing.T) {
	root := tree(t, map[string]string{
		"a.go": "", "b/c.go": "", "b/.hidden": "", ".dot/x": "", ".git/config": "", "node_modules/m/i.js": "",
		".gitignore": "*.log\n/build/\n", "x.log": "", "b/y.log": "", "build/out": "", "b/build/kept": "",
		"b/.ignore": "!y.log\n", "empty/": "",
	})
	if err := os.Symlink(root, filepath.Join(root, "loop")); err != nil {
		t.Log(err)
	}
	for name, tt := range map[string]struct {
		o    ListOptions
		want []string
	}{
		"as it is": {ListOptions{}, []string{"a.go", "b/build/kept", "b/c.go", "b/y.log"}},
		"hidden": {ListOptions{Hidden: true}, []string{".dot/x", ".gitignore", "a.go", "b/.hidden", "b/.ignore", "b/build/kept",
			"b/c.go", "b/y.log"}},
		"without ignore files": {ListOptions{NoIgnore: true}, []string{"a.go", "b/build/kept", "b/c.go", "b/y.log", "build/out",
			"x.log"}},
		"directories": {ListOptions{Dirs: true}, []string{"a.go", "b/", "b/build/", "b/build/kept", "b/c.go", "b/y.log", "empty/"}},
		"skipped":     {ListOptions{Skip: func(path string) bool { return filepath.Base(path) == "b" }}, []string{"a.go"}},
	} {
		if diff := cmp.Diff(tt.want, paths(t, root, tt.o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := List(t.Context(), onDisk{}, filepath.Join(root, "none"), ListOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a root that does not exist: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := List(ctx, onDisk{}, root, ListOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
}

// TestIgnoreFilesAsGit compares random patterns with what git ignores.
func TestIgnoreFilesAsGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	patterns := []string{"*.o", "a", "/a", "a/", "b/c", "/b/c", "**/c", "a/**", "a/**/c", "!c", "!*.o", "!a/", "[ab].o", "?.txt",
		"*.txt", "\\!x", "x\\ ", "*", "!*/", "# no", "", "b/*.o", "{a,b}", "**/b/", "c.*", "d*e", "*.", "a b", "\\#x", "/"}
	names := []string{"a", "b", "c", "a.o", "b.o", "x.txt", "c.txt", "!x", "#x", "a b", "dxe", "{a,b}", "x "}
	random := rand.New(rand.NewPCG(1, 2))
	some := func() string {
		var text strings.Builder
		for range random.IntN(5) {
			fmt.Fprintln(&text, patterns[random.IntN(len(patterns))])
		}
		return text.String()
	}
	for round := range 60 {
		files := map[string]string{".gitignore": some(), "a/.gitignore": some(), "b/.gitignore": some()}
		for range 30 {
			path := names[random.IntN(len(names))]
			for range random.IntN(3) {
				path = names[random.IntN(3)] + "/" + path
			}
			if slices.ContainsFunc(slices.Collect(keys(files)), func(other string) bool {
				return strings.HasPrefix(other, path+"/") || strings.HasPrefix(path, other+"/") || other == path
			}) {
				continue
			}
			files[path] = ""
		}
		root := tree(t, files)
		cmd := exec.CommandContext(t.Context(), git, "-c", "core.quotePath=false", "-c", "core.excludesFile=", "ls-files", "-o", "-z",
			"--exclude-per-directory=.gitignore")
		cmd.Dir = root
		if out, err := exec.CommandContext(t.Context(), git, "init", "-q", root).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for name := range strings.SplitSeq(string(out), "\x00") {
			if name != "" && !strings.HasSuffix(name, ".gitignore") {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, paths(t, root, ListOptions{})); diff != "" {
			t.Fatalf("round %d, .gitignore %q, a %q, b %q (-git +ours):\n%s", round, files[".gitignore"], files["a/.gitignore"],
				files["b/.gitignore"], diff)
		}
	}
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func grep(t testing.TB, root, expression, flags string, o GrepOptions) GrepResult {
	t.Helper()
	p, err := CompilePattern(expression, flags)
	if err != nil {
		t.Fatal(err)
	}
	l, err := List(t.Context(), onDisk{}, root, ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if o.MaxLines == 0 {
		o.MaxLines = 100
	}
	found, err := Grep(t.Context(), onDisk{}, root, l.Files, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// shown returns matches as path:line: text, with "-" for a line of the context.
func shown(r GrepResult) (out []string) {
	for _, f := range r.Files {
		for _, l := range f.Lines {
			mark := ":"
			if !l.Match {
				mark = "-"
			}
			out = append(out, fmt.Sprintf("%s%s%d%s%s", f.Path, mark, l.Number, mark, l.Text))
		}
	}
	return out
}

func TestGrep(t *testing.T) {
	root := tree(t, map[string]string{
		"a.txt": "one\ntwo\nthree two\n\nfour\n", "b.txt": "Two\r\ntwo\r\nend", "c.bin": "two\x00two\n",
		"d.txt": strings.Repeat("x", MaxFileSize) + "two", "e": "",
	})
	for name, tt := range map[string]struct {
		expression, flags string
		o                 GrepOptions
		want              []string
	}{
		"a word":                        {"two", "", GrepOptions{}, []string{"a.txt:2:two", "a.txt:3:three two", "b.txt:2:two"}},
		"without case":                  {"two", "i", GrepOptions{}, []string{"a.txt:2:two", "a.txt:3:three two", "b.txt:1:Two", "b.txt:2:two"}},
		"the start of a line":           {"^two", "", GrepOptions{}, []string{"a.txt:2:two", "b.txt:2:two"}},
		"the end of a line, LF or CRLF": {"wo$", "g", GrepOptions{}, []string{"a.txt:2:two", "a.txt:3:three two", "b.txt:1:Two", "b.txt:2:two"}},
		"a whole line":                  {`\Atwo\z`, "", GrepOptions{}, []string{"a.txt:2:two", "b.txt:2:two"}},
		"no literal":                    {`[a-z]{5}`, "", GrepOptions{}, []string{"a.txt:3:three two"}},
		"an empty line":                 {`^$`, "", GrepOptions{}, []string{"a.txt:4:"}},
		"a match over lines counts not": {`two\s+three`, "", GrepOptions{}, nil},
		"dot matches no line ending":    {"o.t", "s", GrepOptions{}, nil},
		"one or the other":              {"four|end", "", GrepOptions{}, []string{"a.txt:5:four", "b.txt:3:end"}},
		"context": {"four|two", "", GrepOptions{Context: 1}, []string{"a.txt-1-one", "a.txt:2:two", "a.txt:3:three two",
			"a.txt-4-", "a.txt:5:four", "b.txt-1-Two", "b.txt:2:two", "b.txt-3-end"}},
		"context that overlaps": {"one|three", "", GrepOptions{Context: 1}, []string{"a.txt:1:one", "a.txt-2-two",
			"a.txt:3:three two", "a.txt-4-"}},
		"a bound":              {"two", "", GrepOptions{MaxLines: 2}, []string{"a.txt:2:two", "a.txt:3:three two"}},
		"a bound in a file":    {"two", "", GrepOptions{MaxLines: 1}, []string{"a.txt:2:two"}},
		"files only":           {"two", "", GrepOptions{FilesOnly: true}, nil},
		"an empty expression":  {"", "", GrepOptions{MaxLines: 1}, []string{"a.txt:1:one"}},
		"a required literal":   {`t[h]ree (\w+)`, "", GrepOptions{}, []string{"a.txt:3:three two"}},
		"a repeated literal":   {`(tw)+o`, "", GrepOptions{}, []string{"a.txt:2:two", "a.txt:3:three two", "b.txt:2:two"}},
		"an optional literal":  {`(three )?two`, "", GrepOptions{}, []string{"a.txt:2:two", "a.txt:3:three two", "b.txt:2:two"}},
		"counted and not read": {"two", "", GrepOptions{CountOnly: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := grep(t, root, tt.expression, tt.flags, tt.o)
			if diff := cmp.Diff(tt.want, shown(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Binary != 1 || got.Large != 1 || got.Unreadable != 0 {
				t.Errorf("%d binary, %d large, %d unreadable files", got.Binary, got.Large, got.Unreadable)
			}
			if want := tt.o.MaxLines > 0; got.More != want {
				t.Errorf("more is %v", got.More)
			}
		})
	}
	if got := grep(t, root, "two", "", GrepOptions{CountOnly: true}); got.Matches != 3 || len(got.Files) != 2 {
		t.Errorf("%+v", got)
	}
	for expression, flags := range map[string]string{"(": "", "a": "x"} {
		if _, err := CompilePattern(expression, flags); err == nil {
			t.Errorf("%q with %q was compiled", expression, flags)
		}
	}
	if p := LiteralPattern("a.b(", true); !p.re.MatchString("xA.B(") || p.re.MatchString("aab(") {
		t.Error("a literal is an expression")
	}
}

// FuzzNextMatch compares the search in a whole text with that of each line.
func FuzzNextMatch(f *testing.F) {
	f.Add("a+b", "", []byte("x\nab\r\naab"))
	f.Add("^$|x", "i", []byte("\n\nX\n"))
	f.Fuzz(func(t *testing.T, expression, flags string, content []byte) {
		p, err := CompilePattern(expression, flags)
		if err != nil {
			return
		}
		for at := 0; at < len(content); {
			start, end, ok := p.nextMatch(content, at)
			wantStart, wantEnd, want := p.nextByLine(content, at)
			if ok != want || ok && (start != wantStart || end != wantEnd) {
				t.Fatalf("%q %q from %d of %q: %d–%d, %v; by line %d–%d, %v", expression, flags, at, content, start, end, ok,
					wantStart, wantEnd, want)
			}
			if !ok {
				return
			}
			at = nextLine(content, end)
		}
	})
}

// TestMatchesOverLinesAreFast: an expression that matches over all lines of a large file is not searched again from each.
func TestMatchesOverLinesAreFast(t *testing.T) {
	root := tree(t, map[string]string{"a": strings.Repeat("a\n", MaxFileSize/2-2) + "b"})
	if got := grep(t, root, "[a].*[b]", "s", GrepOptions{}); got.Matches != 0 || got.Large > 0 {
		t.Errorf("%+v", got)
	}
}

func TestName(t *testing.T) {
	for query, want := range map[string][]string{
		"main": {"Main.go", "a/main_test.go"}, "*.GO": {"Main.go", "a/main_test.go"}, "a/": {"a/main_test.go", "a/x.txt"},
		"a/*.txt": {"a/x.txt"}, "**/*.txt": {"a/x.txt", "top.txt"}, "?op.txt": {"top.txt"}, "./a/x": {"a/x.txt"},
		"[mt]*": {"Main.go", "a/main_test.go", "top.txt"}, "zzz": nil,
	} {
		matches, err := CompileName(query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		var got []string
		for _, path := range []string{"Main.go", "a/main_test.go", "a/x.txt", "top.txt"} {
			if matches(File{Path: path}) {
				got = append(got, path)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	if _, err := CompileName("[a"); err == nil {
		t.Error("a glob without its end was compiled")
	}
}

// BenchmarkGrep searches this module for a rare word.
func BenchmarkGrep(b *testing.B) {
	root, err := filepath.Abs("../..")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got := grep(b, root, "zzyzx"+"zzyzx", "", GrepOptions{}); got.Matches != 0 {
			b.Fatal(got.Files)
		}
	}
}

func TestLargeBufferIsNotShared(t *testing.T) {
	root := tree(t, map[string]string{"a": strings.Repeat("long line\n", 1000), "b": "x\n"})
	got := grep(t, root, "long|x", "", GrepOptions{MaxLines: 5000})
	var all bytes.Buffer
	for _, f := range got.Files {
		for _, l := range f.Lines {
			all.WriteString(l.Text + "\n")
		}
	}
	if all.String() != strings.Repeat("long line\n", 1000)+"x\n" {
		t.Error("lines of one file are in another")
	}
}
