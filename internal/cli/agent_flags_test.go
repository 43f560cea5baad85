//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/cli"
)

// A flagCase is a command line and what it results in. out and stderr are parts of the output; request is a part of the
// last request to the model, or "!" and a text that it does not have.
type flagCase struct {
	args         []string
	code         int
	out, stderr  string
	request      []string
	input        string
	seedRow      string // the row of the seed's table of flags that the case is about
	inDifference string // a text of docs/seeds.md, if Drawbridge differs in this row
}

func words(line string) []string { return strings.Fields(line) }

// seedFlags are the rows of the seed's table of flags.
const seedFlags = "--print/-p --json/--rpc --interactive/-i --model/-m --fallback-model --account --thinking --list-models " +
	"--cwd --system --append-system --resume/-r --continue/-c --tools --no-tools --mcp --help/-h --version/-v"

var flagCases = []flagCase{
	{seedRow: "--print/-p", args: words("-p hello"), out: "the answer to: hello\n"},
	{seedRow: "--print/-p", args: words("--print hello"), input: "piped", out: "the answer to: hello piped\n"},
	{seedRow: "--json/--rpc", args: words("--json"), input: `{"jsonrpc":"2.0","id":1,"method":"submit","params":{"input":"hello"}}` + "\n",
		out: `"text":"the answer to: hello"`},
	{seedRow: "--json/--rpc", args: words("--rpc"), input: "{\n", out: "malformed JSON request line"},
	{seedRow: "--interactive/-i", args: words("-i"), code: 1, stderr: "a session needs a terminal"},
	{seedRow: "--interactive/-i", args: words("-p --interactive hello"), code: 1, stderr: "a session needs a terminal"},
	{seedRow: "--model/-m", args: words("-p -m fake/tiny hello"), out: "the answer to: hello\n"},
	{seedRow: "--model/-m", args: words("-p --model=bad/tiny hello"), code: 1, stderr: "run failed: "},
	{seedRow: "--model/-m", args: words("-p --model nobody/x hello"), code: 1, stderr: "nobody/x"},
	{seedRow: "--fallback-model", args: words("-p -m fake/tiny --fallback-model fake/tiny hello"), out: "the answer to: hello\n"},
	{seedRow: "--fallback-model", args: words("-p --fallback-model nobody/x hello"), code: 1, stderr: "nobody/x"},
	{seedRow: "--account", args: words("-p --account work hello"), code: 2, stderr: "unknown flag: --account", inDifference: "`--account`"},
	{seedRow: "--thinking", args: words("-p --thinking off hello"), out: "the answer to: hello\n"},
	{seedRow: "--thinking", args: words("-p --thinking minimal hello"), out: "the answer to: hello\n"},
	{seedRow: "--thinking", args: words("-p --thinking low hello"), out: "the answer to: hello\n"},
	{seedRow: "--thinking", args: words("-p --thinking medium hello"), out: "the answer to: hello\n"},
	{seedRow: "--thinking", args: words("-p --thinking high hello"), out: "the answer to: hello\n"},
	{seedRow: "--thinking", args: words("-p --thinking xhigh hello"), out: "the answer to: hello\n"},
	{seedRow: "--thinking", args: words("-p --thinking hard hello"), code: 2, stderr: "--thinking is \"off\", \"minimal\", \"low\""},
	{seedRow: "--list-models", args: words("--list-models"), out: "fake "},
	{seedRow: "--cwd", args: words("-p --cwd sub read @there.txt"), out: "text of there.txt"},
	{seedRow: "--cwd", args: words("-p --cwd missing hello"), code: 2, stderr: "is not a directory"},
	{seedRow: "--system", args: words("-p --system=Be-brief hello"), request: []string{"Be-brief"}},
	{seedRow: "--append-system", args: words("-p --append-system -no-jokes hello"), request: []string{"-no-jokes"}},
	{seedRow: "--continue/-c", args: words("-p -c and now"), request: []string{"hello", "and now"}},
	{seedRow: "--continue/-c", args: words("-p --continue and then"), request: []string{"and now", "and then"}},
	{seedRow: "--resume/-r", args: words("-p -r SESSION resumed"), request: []string{"and then", "resumed"}},
	{seedRow: "--resume/-r", args: words("-p --resume=SESSION again"), request: []string{"resumed", "again"}},
	{seedRow: "--resume/-r", args: words("-p --resume nothing hello"), code: 2, stderr: "no session nothing was held"},
	{seedRow: "--tools", args: words("-p --tools Read,TodoRead --tools=web_fetch hello"),
		request: []string{`"read"`, `"todo_read"`, `"webfetch"`, `!"bash"`, `!"write"`, `"every__echo"`}},
	{seedRow: "--no-tools", args: words("-p --no-tools hello"), request: []string{`"Tools":null`}},
	{seedRow: "--mcp", args: words("-p --mcp one.json,two.json --mcp three.json hello"),
		request: []string{"- one: 14 tools", "- two: 14", "- three: 14", "!- every"}},
	{seedRow: "--help/-h", args: words("-h"), out: "--append-system"},
	{seedRow: "--help/-h", args: words("--help"), out: "Exit codes: 0 done, 1 not done"},
	{seedRow: "--version/-v", args: words("--version"), out: "drawbridge "},
	{seedRow: "--version/-v", args: words("-v -p hello"), out: "the answer to: hello\n", inDifference: "`-v` is `--verbose`"},

	// The rules of the parser.
	{args: words("-p -- --json"), out: "the answer to: --json\n"},
	{args: words("-pc clusters"), out: "the answer to: clusters\n", request: []string{`"--json"`, `"clusters"`}},
	{args: words("-pz hello"), code: 2, stderr: "unknown shorthand flag: 'z'", inDifference: "clusters with an unknown letter"},
	{args: words("-p --permission-mode foo hello"), code: 2, stderr: "--permission-mode is \"default\", \"acceptEdits\""},
	{args: words("-p --max-turns -1 hello"), code: 2, stderr: "--max-turns is a positive number"},
	{args: words("-p --max-calls -1 hello"), code: 2, stderr: "--max-calls is a positive number"},
	{args: words("-p --max-cost -0.5 hello"), code: 2, stderr: "--max-cost is a positive number"},
	{args: words("-p --nonsense hello"), code: 2, stderr: "unknown flag: --nonsense", inDifference: "unknown flags"},
	{args: words("-p --model --no-tools hello"), code: 1, stderr: "--no-tools", inDifference: "a flag is not the value of the flag before it"},
	{args: words("hello"), code: 2, stderr: "unknown command", inDifference: "the first word is the prompt"},
	{args: words("-p all the words"), out: "the answer to: all the words\n", inDifference: "the first word is the prompt"},
	{args: words("--json -p hello"), code: 2, stderr: "--json takes prompts", inDifference: "`--json` with `-p`"},
	{args: words("login anthropic"), code: 2, stderr: "unknown command", inDifference: "the verbs `signin`, `signout`"},

	// Attached files.
	{args: words("-p see @project.txt please"), out: "<file path=\"project.txt\">\nof the project\n</file>"},
	{args: words("-p @picture.png"), request: []string{"data:image/png;base64,"}},
	{args: words("-p @."), code: 2, stderr: "attach .: Unsupported"},
	{args: words("-p @binary.dat"), code: 2, stderr: "attach binary.dat: Unsupported"},
	{args: words("-p @large.txt"), code: 2, stderr: "attach large.txt: TooLarge"},
	{args: words("-p @missing.txt"), code: 2, stderr: "attach missing.txt: NotFound"},
	{args: words("-p @project.txt/x"), code: 2, stderr: "attach project.txt/x: ReadFailed"},

	// Exit codes and texts.
	{args: words("-p"), code: 2, stderr: "--print needs a prompt"},
	{args: words("-p -m bad/tiny hello"), code: 1, stderr: "run failed: "},
	{args: words("-p --output-format stream-json hello"), out: `{"type":"text",`, inDifference: "stream-json"},
}

// TestSeedFlags runs a command line for every row of the seed's table of flags, every rule of its parser and every exit
// code. A row in which Drawbridge differs is in docs/seeds.md.
func TestSeedFlags(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "seeds.md"))
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t)
	m := agentHome(t, d.home)
	prepareFlagCases(t, d)
	left := map[string]bool{}
	for row := range strings.FieldsSeq(seedFlags) {
		left[row] = true
	}
	if len(left) != 18 {
		t.Errorf("the seed has 18 rows, not %d", len(left))
	}
	for _, c := range flagCases {
		delete(left, c.seedRow)
		if c.inDifference != "" && !strings.Contains(string(docs), c.inDifference) {
			t.Errorf("docs/seeds.md has no %q", c.inDifference)
		}
		runFlagCase(t, d, m, c)
	}
	if len(left) > 0 {
		t.Errorf("rows without a case: %v", left)
	}
}

// runFlagCase runs the command line of a case. SESSION in it stands for the last session.
func runFlagCase(t *testing.T, d *desk, m *fakeModel, c flagCase) {
	t.Helper()
	args := append([]string(nil), c.args...)
	for i, arg := range args {
		if strings.Contains(arg, "SESSION") {
			files, err := filepath.Glob(filepath.Join(d.home, ".local", "state", "drawbridge", "sessions", "*", "*.jsonl"))
			if err != nil || len(files) == 0 {
				t.Fatal("there is no session", err)
			}
			slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
			args[i] = strings.Replace(arg, "SESSION", strings.TrimSuffix(filepath.Base(files[len(files)-1]), ".jsonl"), 1)
		}
	}
	var out, stderr bytes.Buffer
	code := cli.Main(t.Context(), args, d.process(strings.NewReader(c.input), &out, &stderr))
	if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(stderr.String(), c.stderr) {
		t.Errorf("%q: exit code %d, want %d\n%.2000s\n%.2000s", args, code, c.code, &out, &stderr)
	}
	if len(c.request) == 0 {
		return
	}
	all := m.seen()
	if len(all) == 0 {
		t.Fatalf("%q: the model was asked nothing", args)
	}
	last := all[len(all)-1]
	for _, want := range c.request {
		if not, ok := strings.CutPrefix(want, "!"); ok == strings.Contains(last, strings.TrimPrefix(want, "!")) {
			t.Errorf("%q: the request and %q (%q): %.3000s", args, want, not, last)
		}
	}
}

// prepareFlagCases writes the files of the cases, and a provider of models that refuses each request.
func prepareFlagCases(t *testing.T, d *desk) {
	t.Helper()
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"object":"list","data":[{"id":"tiny","object":"model"}]}`)
			return
		}
		http.Error(w, `{"error":{"message":"it is not accepted"}}`, http.StatusBadRequest)
	}))
	t.Cleanup(bad.Close)
	path := filepath.Join(d.home, ".config", "drawbridge", "drawbridge.toml")
	settings, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d.write(".config/drawbridge/drawbridge.toml", string(settings)+
		fmt.Sprintf("[models.providers.fake.models.tiny]\nimages = true\n"+
			"[models.providers.bad]\nkind = \"openai-chat\"\nbase_url = %q\n", bad.URL+"/v1"))
	d.write("project/project.txt", "of the project")
	d.write("project/sub/there.txt", "text of there.txt")
	d.write("project/picture.png", "\x89PNG\r\n\x1a\n")
	d.write("project/binary.dat", "a\x00b")
	d.write("project/large.txt", strings.Repeat("large\n", 2<<20))
	var file struct {
		Servers map[string]json.RawMessage `json:"servers"`
	}
	rows, err := os.ReadFile(filepath.Join(d.home, ".config", "drawbridge", "mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(rows, &file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two", "three"} {
		d.write("project/"+name+".json", fmt.Sprintf(`{"servers": {%q: %s}}`, name, file.Servers["every"]))
	}
}
