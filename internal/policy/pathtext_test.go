package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

// TestAPathIsOneUnderAnyName has "/etc/x" beside a path that is allowed, under names that tools have.
func TestAPathIsOneUnderAnyName(t *testing.T) {
	denies := compiled(t, allow, drawbridge.Rule{Effect: deny, Paths: []string{"/etc/**"}})
	allows := compiled(t, deny, drawbridge.Rule{Effect: allow, Paths: []string{"~/src/**"}})
	forms := []string{
		"/etc/x", "//etc/x", "/./etc//x/", "~/../../etc/x", "$HOME/../../etc/x", "${HOME}/../../etc/x", "file:///etc/x",
		"FILE:/%65tc/x", "sqlite:///etc/x",
		"--flag=/etc/x", "key:/etc/x", "cat '/etc/x'", "cat </etc/x", "open(\"/etc/x\")", "ATTACH '/etc/x' AS a",
		"Data Source=/etc/x;", "see /etc/x.",
		"a\n/etc/x\nb", "https://host/ok?file=/etc/x", "git+file:///etc/x", `{"p":"\/etc\/x"}`, "~/src/a:/etc/x",
		"~/src/a,/etc/x", "~/src/a /etc/x",
		"postgres://%2fetc%2fx/db", "看：/etc/x", "@/etc/x", "x=[/etc/x]", "/etc/x:12:3", "~/src/a;/etc/x", "`/etc/x`",
		"/etc/x?y#z", "#!/etc/x",
	}
	names := []string{
		"filename", "fileName", "file_name", "target", "to", "from", "into", "output", "outfile", "root", "location",
		"save_as", "saveAs", "repository",
		"workspace", "config", "input", "text", "q", "script", "sql", "content", "",
	}
	for _, form := range forms {
		for _, name := range names {
			for _, value := range []any{form, []any{"a", form}, map[string]any{"p": form}, map[string]any{form: 1},
				[]any{map[string]any{"a": []any{form}}}} {
				text, err := json.Marshal(map[string]any{"path": "~/src/a", name: value})
				if err != nil {
					t.Fatal(err)
				}
				q := call("fs", "save", string(text))
				if d := denies.Decide(q); d.Effect != deny {
					t.Errorf("%s is not denied", text)
				}
				if d := allows.Decide(q); d.Effect != deny {
					t.Errorf("%s is allowed", text)
				}
			}
		}
	}
}

// TestATextWithoutPathsIsNone has what looks like a path beside one that is allowed: it does not keep a rule from
// allowing the call.
func TestATextWithoutPathsIsNone(t *testing.T) {
	allows := compiled(t, deny, drawbridge.Rule{Effect: allow, Paths: []string{"~/src/**"}})
	for _, text := range []string{
		"and/or", "1/2", "n/a", "yes / no", "a / b", "</div>", "<p>x</p>", "<br />", `<img src="x"/>`,
		"https://host/etc/x", "HTTP://u:p@host:80//etc/x", "see https://host/a/b, and c/d",
		"s3://bucket/etc/x", "// a comment", "/* a comment */", "/** doc */", "a\n * b\n */", "application/json",
		"src/main.go", "./a/../b", "a /= 2", "12:30/13:00", "~5/6", "~~a~~/b", "a =~ b",
		"\\d+\\w", `"\\n\\t"`, "data:image/png;base64,iVBOR/w0+/K//8=", "/" + strings.Repeat("9j/4AAQ", 700), "$5/day",
		"100%/day", "profile:x", "file: see below",
		"café/x", "mailto:a@b/c", "~/src/b", "~ada/src/b", "/home/ada/src/a b/c", "see ~/src/b.",
		"cat '/home/ada/src/a b'", "open('/home/ada/src/x')", "\\\\", "\\", "~", ":", "$", "%",
	} {
		raw, _ := json.Marshal(map[string]any{"path": "~/src/a", "note": text})
		want := allow
		if text == "~" { // that is the home directory
			want = deny
		}
		if d := allows.Decide(call("fs", "save", string(raw))); d.Effect != want {
			found, _ := FindPaths(text, false)
			t.Errorf("%s: %+v, found %v", raw, d, found)
		}
	}
}

// TestWindowsPathsAreFound has drives and hosts.
func TestWindowsPathsAreFound(t *testing.T) {
	for text, glob := range map[string]string{
		`C:\Users\x`: "c:/users/**", "c:/users/x": "c:/users/**", `type "C:\Users\a b\x"`: "c:/users/**",
		`\\host\share\x`: "//host/share/**", `//host/share/x`: "//host/share/**",
		`copy \\host\share\x y`: "//host/share/**", `"C:\\Users\\x"`: "c:/users/**", `%USERPROFILE%\x`: "~/**",
		`$env:USERPROFILE\x`: "~/**", `-v C:\Users\x`: "c:/users/**",
		`C:\Users (x86)\x\y`: "c:/users (x86)/**", `\\?\C:\Users\x`: "c:/users/**", "~root/x": "/root/**",
		"~bob/.ssh/id": "/home/*/.ssh/**", "~ada/.ssh/id": "~/.ssh/**",
		"cat /root/a\\ b": "/root/a b", "cat '/root/a b'": "/root/a b", "cat -I/root/x": "/root/**",
		"$NONE/root/x": "/root/**", "$(x)/root/x": "/root/**",
	} {
		raw, _ := json.Marshal(map[string]any{"note": text})
		if d := compiled(t, allow, drawbridge.Rule{Effect: deny, Paths: []string{glob}}).Decide(call("fs", "save",
			string(raw))); d.Effect != deny {
			found, _ := FindPaths(text, false)
			t.Errorf("%s is not denied by %s: found %v", raw, glob, found)
		}
		if d := compiled(t, deny, drawbridge.Rule{Effect: allow, Paths: []string{"/ok/**"}}).Decide(call("fs", "save",
			`{"path":"/ok/x","command":`+string(raw[len(`{"note":`):]))); d.Effect != deny {
			t.Errorf("%s is allowed", raw)
		}
	}
}

// TestARelativeValueIsAPathByItsName has names whose values are paths although nothing in the value shows it.
func TestARelativeValueIsAPathByItsName(t *testing.T) {
	for name, want := range map[string]bool{
		"path": true, "filePath": true, "FILE-PATHS": true, "path_2": true, "file1": true, "fileName": true,
		"file_name": true, "filenames": true, "dirName": true, "folder_name": true, "save_as": true,
		"saveAs": true, "target": true, "to": true, "from": true, "into": true, "output": true, "outfile": true,
		"root": true, "location": true, "destDir": true, "destination_path": true, "outputDir": true,
		"root_dir": true, "workingdir": true, "fichierPath": true, "čestaPath": true,
		"name": false, "user_name": false, "same_as": false, "profile": false, "text": false, "input": false,
		"token": false, "redirect": false, "": false, "2": false,
	} {
		if got := isPathName(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

func TestFindPaths(t *testing.T) {
	for text, want := range map[string]string{
		"cat /a/b;ls":        "/a/b=plain /a/b;ls=extended",
		"see /a/b.":          "/a/b.=plain /a/b=guess",
		`x "/a/b c" d`:       "/a/b=plain /a/b c=extended",
		`${HOME:-/x}/.ssh/a`: "~/.ssh/a=plain",
		`"$HOME/a b"`:        "~/a=plain ~/a b=extended",
		"file://h/%61?q":     "file://h/%61?q=plain file://h/%61=guess",
		"db:///b%20c":        "/b%20c=plain /b c=plain",
		"C:/a/b":             "C:/a/b=plain /a/b=guess",
		"ls /":               "",
		"split('/')":         "/=plain",
		"--root=/ x":         "/=plain",
		"a =~ b":             "",
	} {
		found, err := FindPaths(text, false)
		var got []string
		for _, one := range found {
			got = append(got, one.Path+"="+[]string{"plain", "extended", "guess"}[one.Certainty])
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
	if found, _ := FindPaths("ls /", true); len(found) != 1 || found[0].Path != "/" {
		t.Errorf("the root in a command line: %v", found)
	}
}

// TestATextThatIsTooLargeCannotBeJudged has parts of a word that may all be paths.
func TestATextThatIsTooLargeCannotBeJudged(t *testing.T) {
	for name, text := range map[string]string{
		"many paths":       strings.Repeat("/a ", 100_000),
		"long ones":        strings.Repeat("/..:", 100_000),
		"paths in a list":  strings.Repeat("/a,", 100_000),
		"long with quotes": strings.Repeat("'/a ", 100_000),
	} {
		raw := fmt.Sprintf(`{"path":"/ok/x","text":%q}`, text)
		for _, effect := range []drawbridge.Effect{deny, ask, allow} {
			d := compiled(t, allow, drawbridge.Rule{Effect: effect, Paths: []string{"/ok/**"}}).Decide(
				call("fs", "x", raw))
			if d.Effect != deny || d.Why != "rule 1 cannot be judged: "+errTooLarge.Error() {
				t.Errorf("%s, %s: %+v", name, effect, d)
			}
		}
	}
}

// FuzzFindPaths shows that whatever stands around a path in a text, it is found, and that no text makes the finder
// fail.
func FuzzFindPaths(f *testing.F) {
	for _, seed := range []string{"", "cat ", "x='", "C:", "~", "$HOME", "%2f", "a://", "file:", "\\\\h\\", "看"} {
		f.Add(seed, " and more")
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		_, _ = FindPaths(before+after, true)
		found, err := FindPaths(before+" /etc/x "+after, false)
		if err != nil {
			return
		}
		for _, one := range found {
			if one.Path == "/etc/x" && one.Certainty == Plain {
				return
			}
		}
		t.Errorf("%q: %v", before+" /etc/x "+after, found)
	})
}

func BenchmarkPathsInContent(b *testing.B) {
	line := "\tif err := os.WriteFile(filepath.Join(dir, \"a/b.txt\"), nil, 0o600); err != nil { // see https://host/doc and n/a\n"
	raw, _ := json.Marshal(map[string]any{"path": "~/src/a", "content": strings.Repeat(line, 1000)})
	q := call("fs", "write", string(raw))
	for name, r := range map[string]drawbridge.Rule{"without": {Effect: deny, Args: is("path", `"x"`)},
		"with": {Effect: deny, Paths: []string{"/etc/**"}}} {
		p := compiled(b, allow, r)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if d := p.Decide(q); d.Effect != allow {
					b.Fatal(d)
				}
			}
		})
	}
}
