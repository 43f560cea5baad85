package configfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTOMLKeepsOrderAndLines(t *testing.T) {
	doc, err := ParseTOML([]byte("\ufeff# top = 1\nz = 1 # a = 2\n\n" +
		"text = \"\"\"\nnot = 'a key'\n[nor.a.table]\"\"\"\"\n" +
		"b.'c d'.e = [ # list\n  1, '#', # one\n  { y = 2, x = '}' },\n]\n" +
		"[t]\nlast = 1979-05-27 07:32:00\n[[l]]\n[[l.m]]\nk = inf\n[l.m.n]\n[[l]]\n[ \"t\" . u ]\r\n\"a\\u0041\" = true\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var walk func(path string, n Node)
	walk = func(path string, n Node) {
		for _, m := range n.Members {
			got = append(got, path+m.Name+" "+string(rune('0'+m.Line/10))+string(rune('0'+m.Line%10))+" "+
				string(m.Value.AppendJSON(nil, false)))
			walk(path+m.Name+".", m.Value)
		}
		for _, item := range n.Items {
			walk(path+"#.", item)
		}
	}
	walk("", doc)
	want := []string{
		`z 02 1`,
		`text 04 "not = 'a key'\n[nor.a.table]\""`,
		`b 07 {"c d":{"e":[1,"#",{"y":2,"x":"}"}]}}`,
		`b.c d 07 {"e":[1,"#",{"y":2,"x":"}"}]}`,
		`b.c d.e 07 [1,"#",{"y":2,"x":"}"}]`,
		`b.c d.e.#.y 09 2`,
		`b.c d.e.#.x 09 "}"`,
		`t 11 {"last":"1979-05-27T07:32:00Z","u":{"aA":true}}`,
		`t.last 12 "1979-05-27T07:32:00Z"`,
		`t.u 18 {"aA":true}`,
		`t.u.aA 18 true`, // escaped: it has the line of its table
		`l 13 [{"m":[{"k":"+Inf","n":{}}]},{}]`,
		`l.#.m 14 [{"k":"+Inf","n":{}}]`,
		`l.#.m.#.k 15 "+Inf"`,
		`l.#.m.#.n 16 {}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestHostileTOML shows that a file from a stranger's project costs little: the decoder recurses, and spells out the
// full name of each key.
func TestHostileTOML(t *testing.T) {
	const deep, many = "values nest deeper than 64", "the keys of the file are too many or too long"
	for name, tt := range map[string]struct{ file, want string }{
		"arrays":        {"a = " + strings.Repeat("[", 1<<20), deep},
		"inline tables": {"a = " + strings.Repeat("{a=", 1<<20), deep},
		"mixed":         {"a = " + strings.Repeat("[{a=", 1<<20), deep},
		"dotted keys":   {strings.Repeat("a.", 1<<20) + "a = 1", deep},
		"dotted header": {"[" + strings.Repeat("a.", 1<<20) + "a]", deep},
		"long header":   {"[" + strings.Repeat("a", 1<<20) + "]\n" + strings.Repeat("k=1\n", 1<<16), many},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseTOML([]byte(tt.file))
			if err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestHostileJSON(t *testing.T) {
	for _, unit := range []string{"[", `{"a":`, `[/*]*/`, "[//]\n", `["]",`} {
		_, err := ParseJSON([]byte(strings.Repeat(unit, 1<<18)))
		if err == nil || err.Error() != "values nest deeper than 64" {
			t.Errorf("%q: %v", unit, err)
		}
	}
	flat := `{"servers": {}, "x": "` + strings.Repeat("[", 100) + `", /* ` + strings.Repeat("{", 100) + " */\n//" +
		strings.Repeat("[", 100) + "\n}"
	if _, err := ParseJSON([]byte(flat)); err != nil {
		t.Error(err)
	}
}
