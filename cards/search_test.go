package cards

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
)

// newSearchBench has a small tree.
func newSearchBench(t *testing.T) *bench {
	b := newBench(t, nil)
	b.file("a.go", "package a\n\nfunc One() {}\nfunc two() {}\n")
	b.file("sub/b.go", "package b\nfunc One() {}\n")
	b.file("sub/B.md", "One\n")
	b.file(".hidden", "One\n")
	b.file("x.log", "One\n")
	b.file(".gitignore", "*.log\n")
	b.file("bin", "One\x00\n")
	return b
}

func TestLs(t *testing.T) {
	b := newSearchBench(t)
	b.want("ls", `{}`, "dir            -  sub/\nfile          39  a.go\nfile           5  bin\nfile           4  x.log\n")
	b.want("ls", `{"path":"sub"}`, "file          24  b.go\nfile           4  B.md\n")
	if got := b.call("ls", `{"showHidden":true}`); !strings.Contains(got, ".gitignore\n") || !strings.Contains(got, ".hidden\n") {
		t.Error(got)
	}
	b.want("ls", `{"path":"a.go"}`, filepath.Join(b.dir, "a.go")+" is not a directory. Read it with read.")
	b.want("ls", `{"path":"none"}`, "Could not list "+filepath.Join(b.dir, "none")+": no such file or directory.")
	b.file("empty/x/y", "")
	b.want("ls", `{"path":"empty/x/../z/../x/../../empty"}`, "dir            -  x/\n")
	for i := range maxListedEntries + 5 {
		b.file(fmt.Sprintf("many/%d", i), "")
	}
	if got := b.call("ls", `{"path":"many"}`); !strings.HasSuffix(got, "\n… and 5 more\n") {
		t.Error(got[len(got)-100:])
	}
	if err := os.WriteFile(filepath.Join(b.dir, "sub", "x\ny\x1b[2J"), nil, 0o644); err != nil {
		t.Log(err)
	} else if got := b.call("ls", `{"path":"sub"}`); strings.Contains(got, "\x1b") || !strings.Contains(got, `x\ny\u001b[2J`) {
		t.Errorf("%q", got)
	}
}

func TestGrepCard(t *testing.T) {
	b := newSearchBench(t)
	for args, want := range map[string]string{
		`{"pattern":"func One"}`:                                        "a.go:3: func One() {}\nsub/b.go:2: func One() {}\nNot searched, because binary: 1.",
		`{"pattern":"one","flags":"i","glob":"*.go"}`:                   "a.go:3: func One() {}\nsub/b.go:2: func One() {}\n",
		`{"pattern":"One","path":"sub"}`:                                "sub/B.md:1: One\nsub/b.go:2: func One() {}\n",
		`{"pattern":"One","path":"sub/b.go"}`:                           "sub/b.go:2: func One() {}\n",
		`{"pattern":"func One","context":1,"path":"a.go"}`:              "a.go-2- \na.go:3: func One() {}\na.go-4- func two() {}\n",
		`{"pattern":"func","output":"count","glob":"*.go"}`:             "a.go: 2\nsub/b.go: 1\n",
		`{"pattern":"func","output":"files","glob":"*.go"}`:             "a.go\nsub/b.go\n",
		`{"pattern":"func","limit":2,"glob":"a.go"}`:                    "a.go:3: func One() {}\na.go:4: func two() {}\n",
		`{"pattern":"func","limit":1,"glob":"a.go"}`:                    "a.go:3: func One() {}\nThere are more matches: narrow the search, or raise limit.",
		`{"pattern":"One() {","literal":true,"glob":"a.go"}`:            "a.go:3: func One() {}\n",
		`{"pattern":"^One$","hidden":true,"ignored":true,"glob":"*.*"}`: ".hidden:1: One\nsub/B.md:1: One\nx.log:1: One\n",
		`{"pattern":"zzz","path":"a.go"}`:                               "No line matches.",
		`{"pattern":"("}`:                                               "Could not compile the search pattern: error parsing regexp: missing closing ): `(`",
		`{"pattern":"a","flags":"q"}`:                                   "Could not compile the search pattern: flag 'q' is none of g, i, m, s, u, y",
		`{"pattern":""}`:                                                "pattern is empty.",
		`{"pattern":"a","limit":5001}`:                                  "limit must be from 1 to 5000.",
		`{"pattern":"a","context":-1}`:                                  "context must be from 0 to 20.",
		`{"pattern":"a","output":"x"}`:                                  "output must be lines, files or count.",
		`{"pattern":"a","glob":"[a"}`:                                   `Could not use glob: the glob "[a" is not valid.`,
		`{"pattern":"a","path":"none"}`:                                 "Could not search " + filepath.Join(b.dir, "none") + ": no such file or directory.",
	} {
		b.want("grep", args, want)
	}
	b.file("long.txt", strings.Repeat("x", 2*maxHitLine)+"\n"+strings.Repeat("yyyy yyyy yyyy yyyy\n", 10_000))
	if got := b.call("grep", `{"pattern":"x","path":"long.txt"}`); len(got) > maxHitLine+50 || !strings.HasSuffix(got, "…\n") {
		t.Errorf("%d bytes", len(got))
	}
	got := b.call("grep", `{"pattern":"y","path":"long.txt","limit":5000}`)
	if len(got) > maxSearchBytes+200 || !strings.HasSuffix(got, "yyyy\nThere are more matches: narrow the search, or raise limit.") {
		t.Errorf("%d bytes: %s", len(got), got[len(got)-200:])
	}
	sources, _ := b.trail.Sources(deck.RunOf(drawbridge.Caller{Session: "one"}))
	if len(sources) == 0 || sources[0].Kind != "file" {
		t.Errorf("the trail is %v", sources)
	}
}

func TestFindCard(t *testing.T) {
	b := newSearchBench(t)
	for args, want := range map[string]string{
		`{"query":"b"}`:                               "bin\nsub/\nsub/B.md\nsub/b.go\n",
		`{"query":"*.GO"}`:                            "a.go\nsub/b.go\n",
		`{"query":"sub/*.md"}`:                        "sub/B.md\n",
		`{"query":"b.*","path":"sub"}`:                "sub/B.md\nsub/b.go\n",
		`{"query":"sub","type":"dir"}`:                "sub/\n",
		`{"query":"sub","type":"file"}`:               "Nothing has such a name.\n",
		`{"query":"*.log"}`:                           "Nothing has such a name.\n",
		`{"query":"*.log","ignored":true}`:            "x.log\n",
		`{"query":".h*","hidden":true}`:               ".hidden\n",
		`{"query":""}`:                                "query is empty.",
		`{"query":"a","type":"socket"}`:               "type must be file or dir.",
		`{"query":"a","path":"none"}`:                 "Could not search " + filepath.Join(b.dir, "none") + ": no such file or directory.",
		`{"query":"[","path":"."}`:                    `Could not use glob: the glob "[" is not valid.`,
		`{"query":"a.go","path":"` + b.dir + `/sub"}`: "Nothing has such a name.\n",
	} {
		b.want("find", args, want)
	}
	for i := range maxFound + 3 {
		b.file(fmt.Sprintf("many/f%d", i), "")
	}
	if got := b.call("find", `{"query":"f*"}`); !strings.HasSuffix(got, "\n… and 3 more: narrow the search.\n") {
		t.Error(got[len(got)-100:])
	}
}

// TestSearchesSkipProtectedFiles has a protected directory below a link.
func TestSearchesSkipProtectedFiles(t *testing.T) {
	var own string
	b := newBench(t, map[string]any{ProtectedFilesKey: ProtectedFiles(func(path string) bool { return path == own })})
	real, err := filepath.EvalSymlinks(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	own = filepath.Join(real, "tree", "own")
	b.file("tree/own/secret", "key\n")
	b.file("tree/a", "key\n")
	if err := os.Symlink("tree", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []drawbridge.CallerKind{drawbridge.Author, drawbridge.External} {
		caller := drawbridge.Caller{Kind: kind, Dir: b.dir}
		for _, path := range []string{"tree", "link", "link/../tree"} {
			for _, got := range []string{b.as(caller, "grep", `{"pattern":"key","path":"`+path+`"}`),
				b.as(caller, "find", `{"query":"*","path":"`+path+`"}`)} {
				if strings.Contains(got, "secret") != (kind == drawbridge.Author) || !strings.Contains(got, "/a") {
					t.Errorf("%v in %s: %s", kind, path, got)
				}
			}
		}
	}
}
