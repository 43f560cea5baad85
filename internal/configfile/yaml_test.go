package configfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestYAML(t *testing.T) {
	root, err := ParseYAML(
		[]byte("# goose\nextensions:\n  a: &a\n    enabled: true\n    args: [\"-y\", 'pkg']\n    timeout: 3_0\n" +
			"    empty: ~\n    when: 2000-01-02\n    big: .inf\n    hex: 0x10\n    half: 0.5\n  b:\n    <<: *a\n    args: []\n  c: *a\n"))
	if err != nil {
		t.Fatal(err)
	}
	a := `{"enabled":true,"args":["-y","pkg"],"timeout":30,"empty":null,"when":"2000-01-02","big":".inf","hex":16,"half":0.5}`
	b := `{"args":[],"enabled":true,"timeout":30,"empty":null,"when":"2000-01-02","big":".inf","hex":16,"half":0.5}`
	want := `{"extensions":{"a":` + a + `,"b":` + b + `,"c":` + a + `}}`
	if diff := cmp.Diff(want, string(root.AppendJSON(nil, false))); diff != "" {
		t.Error(diff)
	}
	var lines []int
	for _, path := range []string{"a", "b", "c"} {
		m, _ := root.Find("extensions", path)
		lines = append(lines, m.Line)
	}
	if diff := cmp.Diff([]int{3, 12, 15}, lines); diff != "" {
		t.Error(diff)
	}
}

func TestHostileYAML(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 20; i++ {
		name := func(i int) string { return "a" + string(rune('A'+i)) }
		from := name(i - 1)
		if i == 1 {
			from = "a0"
		}
		bomb.WriteString(name(i) + ": &" + name(i) + " [" + strings.Repeat("*"+from+" , ", 9) + "]\n")
	}
	for name, tt := range map[string]struct{ file, want string }{
		"an alias bomb":    {bomb.String(), "the file has too many values"},
		"a cycle":          {"a: &a\n  b: *a\n", "values nest deeper than 64"},
		"a cycle of keys":  {"a: &a {? *a : 1}\n", ""},
		"deep flow":        {"a: " + strings.Repeat("[", 1<<20), "values nest deeper than 64"},
		"deep blocks":      {strings.Repeat("- ", 1<<20), "values nest deeper than 64"},
		"a secret":         {"token: *hunter2\n", "unknown anchor … referenced"},
		"no mapping":       {"- a\n", "the file must hold a mapping"},
		"nothing":          {"# nothing\n", "the file is empty"},
		"a bare text":      {"hunter2", "the file must hold a mapping"},
		"a bad indent":     {"a:\n  b: 1\n c: 2\n", "did not find expected key"},
		"a tab":            {"a:\n\tb: 1\n", "found character that cannot start any token"},
		"a number that is": {"a: !!int hunter2\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseYAML([]byte(tt.file))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("error %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzYAML(f *testing.F) {
	for _, s := range []string{"", "a: 1\n", "a: &a [*a]\n", "<<: {a: 1}\na: 2\n",
		"a: {b: [c, ~, 1.5e3, 0o7, !!binary aGk=]}\n", "? [a]\n: b\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := ParseYAML(data)
		if err != nil {
			return
		}
		again, err := ParseJSON(root.AppendJSON(nil, false))
		if err != nil {
			t.Fatalf("%q does not become JSON: %v", data, err)
		}
		if a, b := root.AppendJSON(nil, true), again.AppendJSON(nil, true); string(a) != string(b) &&
			strings.ToValidUTF8(string(data), "") == string(data) {
			t.Errorf("%s became %s", a, b)
		}
	})
}
