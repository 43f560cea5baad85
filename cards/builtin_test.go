package cards

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A bench has the cards of all profiles in a directory of its own.
type bench struct {
	t     *testing.T
	dir   string
	trail *deck.ReadTrail
	box   map[drawbridge.CardName]drawbridge.Card
}

func newBench(t *testing.T, handles map[string]any) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), trail: deck.NewReadTrail()}
	all := map[string]any{ReadGateKey: NewReadGate(), ReadTrailKey: b.trail}
	for key, handle := range handles {
		all[key] = handle
	}
	built, err := deck.Provision(NewCatalogue(), deck.All, deck.Context{Dir: b.dir, Handles: all})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := built.Close(); err != nil {
			t.Error(err)
		}
	})
	b.box = built.Box()
	return b
}

// file writes a file.
func (b *bench) file(name, content string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// content returns what a file holds.
func (b *bench) content(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// as calls a card for a caller and returns the first text of the result.
func (b *bench) as(caller drawbridge.Caller, card drawbridge.CardName, args string) string {
	b.t.Helper()
	return rawjson.GetString(first(b.result(caller, card, args)), "text")
}

func (b *bench) result(caller drawbridge.Caller, card drawbridge.CardName, args string) json.RawMessage {
	b.t.Helper()
	call := callWith(json.RawMessage(args))
	call.Caller = caller
	result, err := b.box[card].Run(b.t.Context(), call)
	if err != nil {
		b.t.Fatalf("%s %s: %v", card, args, err)
	}
	return result.Raw
}

func (b *bench) call(card drawbridge.CardName, args string) string {
	b.t.Helper()
	return b.as(drawbridge.Caller{Session: "one"}, card, args)
}

// want calls a card and compares the whole text of its result.
func (b *bench) want(card drawbridge.CardName, args, want string) {
	b.t.Helper()
	if got := b.call(card, args); got != want {
		b.t.Errorf("%s %s:\n%s\nwant:\n%s", card, args, got, want)
	}
}

func TestRead(t *testing.T) {
	b := newBench(t, nil)
	b.file("a.txt", "one\ntwo\r\n\nfour")
	b.file("empty", "")
	b.file("latin", "gr\xfc\xdfe\n")
	b.file("bom", "\xef\xbb\xbfx\n")
	b.file("utf16", "\xff\xfeh\x00i\x00\n\x00")
	b.file("bin", "\x7fELF\x00\x01")
	b.file("bad", "ok \xe2\x82\xac \xff\n")
	b.file("long", strings.Repeat("é", 1500)+"\nnext\n")
	b.file("sub/x", "")
	for _, tt := range []struct{ args, want string }{
		{`{"path":"a.txt"}`, "     1\tone\n     2\ttwo\n     3\t\n     4\tfour\n"},
		{`"{\"path\":\"a.txt\"}"`, "     1\tone\n     2\ttwo\n     3\t\n     4\tfour\n"},
		{`{"path":"a.txt","offset":2,"limit":2}`, "Showing lines 2–3 of 4\n     2\ttwo\n     3\t\n"},
		{`{"path":"a.txt","offset":4}`, "Showing lines 4–4 of 4\n     4\tfour\n"},
		{`{"path":"a.txt","offset":5}`, "a.txt has 4 lines; line 5 does not exist."},
		{`{"path":"a.txt","offset":-1}`, "offset and limit must be 1 or more."},
		{`{"path":"empty"}`, "empty is empty."},
		{`{"path":"latin"}`, "(Windows-1252)\n     1\tgrüße\n"},
		{`{"path":"bom"}`, "(UTF-8 with BOM)\n     1\tx\n"},
		{`{"path":"utf16"}`, "(UTF-16LE)\n     1\thi\n"},
		{`{"path":"bin"}`, "bin is a binary file: 6 bytes, application/octet-stream."},
		{`{"path":"bad"}`, "(Windows-1252)\n     1\tok â‚¬ ÿ\n"},
		{`{"path":"long"}`, "     1\t" + strings.Repeat("é", 1000) + " [line cut: 3001 bytes]\n     2\tnext\n"},
		{`{"path":"sub"}`, filepath.Join(b.dir, "sub") + " is a directory. List it with ls."},
		{`{"path":"none"}`, "Could not read " + filepath.Join(b.dir, "none") + ": no such file or directory."},
		{`{"path":"a\u0000b"}`, "The path contains a NUL character."},
		{`{"path":"mcp://fs/x"}`, "No servers are connected here, so mcp:// cannot be read."},
		{`{"path":"mcp://fs"}`, "A resource is mcp://<server>/<uri>."},
		{`null`, `argument "path" is missing; it must be a string`},
	} {
		b.want("read", tt.args, tt.want)
	}
	if sources, _ := b.trail.Sources("session:one"); len(sources) != 8 {
		t.Errorf("the trail has %d files: %v", len(sources), sources)
	} else {
		for _, s := range sources {
			content, err := os.ReadFile(s.Name)
			if err != nil || s.Digest != deck.Digest(sha256.Sum256(content)) {
				t.Errorf("%s has the digest %s, %v", s.Name, s.Digest, err)
			}
		}
	}
	if sources, _ := b.trail.Sources("session:two"); len(sources) != 0 {
		t.Errorf("the trail of another session has %v", sources)
	}
}

func TestReadStopsAtTheCeiling(t *testing.T) {
	b := newBench(t, nil)
	b.file("many", strings.Repeat(strings.Repeat("x", 99)+"\n", 10_000))
	text := b.call("read", `{"path":"many","limit":10000}`)
	if len(text) > maxReadBytes+200 || !strings.HasPrefix(text, "Showing lines 1–6") ||
		!strings.Contains(text, " of 10000\n") {
		t.Errorf("%d bytes: %.60q", len(text), text)
	}
}

func TestReadImagesAndNotebooks(t *testing.T) {
	b := newBench(t, nil)
	png := "\x89PNG\r\n\x1a\n rest"
	b.file("p.png", png)
	var blocks []struct{ Type, Data, MimeType string }
	if err := json.Unmarshal(rawjson.Get(b.result(drawbridge.Caller{}, "read", `{"path":"p.png"}`), "content"),
		&blocks); err != nil {
		t.Fatal(err)
	}
	if len(blocks) != 2 || blocks[1].Type != "image" || blocks[1].MimeType != "image/png" ||
		blocks[1].Data != "iVBORw0KGgogcmVzdA==" {
		t.Errorf("%+v", blocks)
	}
	b.file("n.ipynb", `{"nbformat":4,"cells":[{"cell_type":"markdown","source":["# Head\n","text"]},`+
		`{"cell_type":"code","source":"1+1","outputs":[{"data":{"text/plain":["2"],"image/png":"aGk=\n"}}]},`+
		`{"cell_type":"code","source":"1/0","outputs":[{"ename":"ZeroDivisionError","evalue":"by zero"}]}]}`)
	b.want("read", `{"path":"n.ipynb"}`, "n.ipynb is a notebook with 3 cells.\n\n[1] markdown\n# Head\ntext\n"+
		"\n[2] code\n1+1\n-> 2\n\n[3] code\n1/0\n-> ZeroDivisionError: by zero\n")
	b.file("broken.ipynb", `{"cells":`)
	b.want("read", `{"path":"broken.ipynb"}`, "     1\t{\"cells\":\n")
}

func TestWrite(t *testing.T) {
	b := newBench(t, nil)
	b.want("write", `{"path":"a/b/new.txt","content":"héllo\n"}`, "Saved 7 byte(s) to a/b/new.txt.")
	if got := b.content("a/b/new.txt"); got != "héllo\n" {
		t.Errorf("%q", got)
	}
	// What the run has written itself it may write again.
	b.want("write", `{"path":"a/b/new.txt","content":"two"}`, "Saved 3 byte(s) to a/b/new.txt.")
	path := b.file("old.sh", "old")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	b.want("write", `{"path":"old.sh","content":"x"}`, string(notReadText))
	b.call("read", `{"path":"old.sh"}`)
	if got := b.as(drawbridge.Caller{Session: "two"}, "write", `{"path":"old.sh","content":"x"}`); got != string(notReadText) {
		t.Errorf("another session: %s", got)
	}
	b.file("old.sh", "older")
	b.want("write", `{"path":"old.sh","content":"x"}`, string(modifiedText))
	b.call("read", `{"path":"old.sh"}`)
	b.want("write", `{"path":"old.sh","content":"x"}`, "Saved 1 byte(s) to old.sh.")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	b.want("write", `{"path":"a","content":"x"}`, filepath.Join(b.dir, "a")+" is a directory.")
	// A link is followed, and stays.
	if runtime.GOOS != "windows" {
		if err := os.Symlink("old.sh", filepath.Join(b.dir, "link")); err != nil {
			t.Fatal(err)
		}
		b.call("read", `{"path":"link"}`)
		b.want("write", `{"path":"link","content":"through"}`, "Saved 7 byte(s) to link.")
		if got := b.content("old.sh"); got != "through" {
			t.Errorf("%q", got)
		}
	}
}

// undoCalls is an UndoLog that fails on demand.
type undoCalls struct {
	calls []string
	err   error
}

func (u *undoCalls) Before(c FileChange) (func([]byte) error, error) {
	u.calls = append(u.calls, fmt.Sprint(c.Run, " ", c.Tool, " ", filepath.Base(c.Path)))
	return func(after []byte) error { u.calls = append(u.calls, string(after)); return nil }, u.err
}

func TestWriteKeepsWhatItReplaces(t *testing.T) {
	undo := &undoCalls{}
	b := newBench(t, map[string]any{UndoKey: undo})
	b.call("write", `{"path":"f","content":"one"}`)
	if got := strings.Join(undo.calls, "|"); got != "session:one write f|one" {
		t.Error(got)
	}
	undo.err = errors.New("the disk is full")
	call := callWith(json.RawMessage(`{"path":"f","content":"two"}`))
	call.Caller.Session = "one"
	if _, err := b.box["write"].Run(t.Context(), call); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("written although nothing was kept: %v", err)
	}
	if got := b.content("f"); got != "one" {
		t.Errorf("%q", got)
	}
}

func TestChecklist(t *testing.T) {
	b := newBench(t, nil)
	b.want("todo_read", `{}`, "The checklist is empty.")
	b.want("todo_set", `{"items":[{"id":"1","text":"read","status":"done"},{"id":"2","text":"write","status":"active"},`+
		`{"id":"3","text":"test","status":"pending"}]}`,
		"[x] 1: read\n[~] 2: write\n[ ] 3: test\n1 done, 1 active, 1 pending\n")
	b.want("todo_read", `{}`, "[x] 1: read\n[~] 2: write\n[ ] 3: test\n1 done, 1 active, 1 pending\n")
	b.want("todo_read", `{"session":"other"}`, "The checklist is empty.")
	if got := b.as(drawbridge.Caller{Session: "two"}, "todo_read", `{}`); got != "The checklist is empty." {
		t.Errorf("another session sees %s", got)
	}
	b.want("todo_set", `{"items":[{"id":"1","text":"a","status":"done"},{"id":"1","text":"b","status":"done"}]}`,
		`Two items have the id "1".`)
	b.want("todo_set", `{"items":[{"id":"1","text":"a","status":"cancelled"}]}`,
		`Item "1" has the status "cancelled"; it must be pending, active or done.`)
	b.want("todo_read", `{}`, "[x] 1: read\n[~] 2: write\n[ ] 3: test\n1 done, 1 active, 1 pending\n")
}

func TestAppCards(t *testing.T) {
	b := newBench(t, nil)
	for _, tt := range []struct {
		card       drawbridge.CardName
		args, want string
	}{
		{"todo", `{"action":"read"}`, "The list is empty."},
		{"todo", `{"action":"set","items":[{"text":"a"},{"text":"b","state":"dropped","weight":"high"}]}`,
			"[ ] a\n[-] b (high)\n"},
		{"todo", `{"action":"read"}`, "[ ] a\n[-] b (high)\n"},
		{"todo", `{"action":"drop"}`, `Unknown action "drop"; it must be read, set.`},
		{"todo", `{"action":"set","items":[{"text":"a","state":"gone"}]}`,
			`Item 1 has the state "gone"; it must be pending, active, done or dropped.`},
		{"task", `{"objective":"x"}`, "No agent is connected that could carry out tasks."},
		{"task", `{"objective":" "}`, "The objective is empty."},
		{"saas-action", `{"action":"discover","query":"x"}`, "No services are connected."},
		{"saas-action", `{"action":"x"}`, `Unknown action "x"; it must be discover, execute.`},
		{"memory", `{"action":"read"}`, "The note is empty."},
		{"memory", `{"action":"append","text":"one"}`, "The note now has 3 byte(s)."},
		{"memory", `{"action":"append","text":"two"}`, "The note now has 7 byte(s)."},
		{"memory", `{"action":"read"}`, "one\ntwo"},
		{"memory", `{"action":"replace","text":"x"}`, "The note now has 1 byte(s)."},
		{"memory", `{"action":"read","session":"s"}`, "The note is empty."},
		{"enter_plan_mode", `{}`, "The host was asked for plan mode. It did not confirm it."},
		{"exit_plan_mode", `{"plan":"1. x"}`, "1. x"},
	} {
		b.want(tt.card, tt.args, tt.want)
	}
	if got := string(rawjson.Get(b.result(drawbridge.Caller{}, "enter_plan_mode", `{}`), "structuredContent")); got !=
		`{"enterPlanMode":true,"applied":false}` {
		t.Error(got)
	}
	if got := string(rawjson.Get(b.result(drawbridge.Caller{}, "exit_plan_mode", `{"plan":"p"}`),
		"structuredContent")); got != `{"exitPlan":true,"plan":"p"}` {
		t.Error(got)
	}
}

// TestHandlesOfTheWrongType has a handle that is not what its key names.
func TestHandlesOfTheWrongType(t *testing.T) {
	for key, id := range map[string]drawbridge.CardName{
		DelegateKey: "task", SaaSGatewayKey: "saas-action", MemoryStoreKey: "memory", ChecklistsKey: "todo_set",
		ReadGateKey: "read", UndoKey: "write",
	} {
		_, err := NewCatalogue().Build(id, deck.Context{Handles: map[string]any{key: 7}})
		fault, ok := errors.AsType[*drawbridge.Fault](err)
		if !ok || fault.Kind != drawbridge.BuildFailed || !strings.Contains(err.Error(), string(id)) {
			t.Errorf("%s: %v", id, err)
			continue
		}
		inner, ok := errors.AsType[*drawbridge.Fault](fault.Err)
		if !ok || inner.Kind != drawbridge.Backend || !strings.Contains(inner.Error(), key) {
			t.Errorf("%s: the cause is %v", id, fault.Err)
		}
	}
}

// TestCatalogueAgrees compares each row of the catalogue with the card that it builds.
func TestCatalogueAgrees(t *testing.T) {
	for _, row := range NewCatalogue().Cards() {
		card, err := row.Build(deck.Context{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		spec := card.Spec()
		if spec.Name != row.ID || spec.Title != row.Title || spec.Server != "" || row.Summary == "" {
			t.Errorf("row %+v, spec %s %q", row, spec.Name, spec.Title)
		}
		golden := filepath.Join("definitions", string(row.ID)+".json")
		var indented bytes.Buffer
		if err := json.Indent(&indented, generatedDefinition(card), "", "  "); err != nil {
			t.Fatal(err)
		}
		indented.WriteByte('\n')
		if *update {
			if err := os.WriteFile(golden, indented.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || !bytes.Equal(want, indented.Bytes()) {
			t.Errorf("%s is not the definition (%v); run with -update and look at the change", golden, err)
		}
		if !bytes.Equal(spec.Definition, generatedDefinition(card)) {
			t.Errorf("%s: the definition is\n%s\nnot the generated one", row.ID, spec.Definition)
		}
		if text := rawjson.GetString(spec.Definition, "description"); regexp.MustCompile(`\s$`).MatchString(text) {
			t.Errorf("%s: the description ends in a blank", row.ID)
		}
	}
}

// generatedDefinition returns the definition that follows from the description of a card and its structs.
func generatedDefinition(card drawbridge.Card) json.RawMessage {
	if foreign, ok := card.(foreignCard); ok {
		card = foreign.Card
	}
	if c, ok := card.(closingCard); ok {
		card = c.Card
	}
	if c, ok := card.(writingCard); ok {
		card = c.shippedCard
	}
	return card.(shippedCard).generate()
}
