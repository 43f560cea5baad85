package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

func TestTakeOver(t *testing.T) {
	row := func(name drawbridge.ServerID, status ImportStatus, text string) ImportCandidate {
		return ImportCandidate{Name: name, Status: status, Raw: json.RawMessage(text)}
	}
	const before = "{\n  // mine\n  \"servers\": [{\"name\": \"a\", \"command\": \"a\"}]\n}\n"
	for name, tt := range map[string]struct {
		before string
		found  []ImportCandidate
		taken  []drawbridge.ServerID
		after  string
		err    string
	}{
		"what is new": {
			before: before,
			found: []ImportCandidate{
				row("b", ImportNew, `{"command":"b","imported_from":"zed"}`), row("c", ImportSame, `{"command":"c"}`),
				row("d", ImportShadowed, `{"command":"d"}`),
				row("e", ImportConflict, `{"command":"e"}`), row("f", ImportRefused, ``),
				row("g", ImportNew, `{"url":"https://g.example.com"}`),
			},
			taken: []drawbridge.ServerID{"b", "g"},
			after: "{\n  // mine\n  \"servers\": [{\"name\": \"a\", \"command\": \"a\"}, {\"name\": \"b\", \"command\": \"b\", \"imported_from\": \"zed\"}, " +
				"{\"name\": \"g\", \"url\": \"https://g.example.com\"}]\n}\n",
		},
		"nothing": {before: before, found: []ImportCandidate{row("c", ImportSame, `{"command":"c"}`)}, after: before},
		"all or nothing": {
			before: before, found: []ImportCandidate{row("b", ImportNew, `{"command":"b"}`),
				row("a", ImportNew, `{"command":"x"}`)}, after: before,
			err: `Server "a" already exists in $FILE`,
		},
		"no server": {before: before, found: []ImportCandidate{row("b", ImportNew, `{}`)}, after: before,
			err: `Invalid server config: Server "b": stdio server requires "command" field`},
		"a broken file": {before: "{", found: []ImportCandidate{row("b", ImportNew, `{"command":"b"}`)}, after: "{",
			err: "read $FILE: line 2, column 1: this is not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mcp.json")
			if err := os.WriteFile(path, []byte(tt.before), 0o600); err != nil {
				t.Fatal(err)
			}
			taken, err := ImportServers(path, tt.found)
			if err == nil && tt.err != "" || err != nil &&
				(tt.err == "" || !strings.HasPrefix(strings.ReplaceAll(err.Error(), path, "$FILE"), tt.err)) {
				t.Errorf("error %v, want %s", err, tt.err)
			}
			if diff := cmp.Diff(tt.taken, taken); diff != "" {
				t.Error("taken (-want +got):\n", diff)
			}
			wantDiff(t, "file", tt.after, content(t, path))
		})
	}
}

func TestTakeOverIntoNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drawbridge", "mcp.json")
	if taken, err := ImportServers(path, []ImportCandidate{{Name: "a", Status: ImportSame}}); taken != nil ||
		err != nil {
		t.Error(taken, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Error("nothing was taken over, and a directory was made")
	}
	if _, err := ImportServers(path, []ImportCandidate{{Name: "a", Status: ImportNew,
		Raw: json.RawMessage(`{"command":"a"}`)}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(content(t, path), `"mcpServers"`) {
		t.Error(content(t, path))
	}
}

func TestClientEntry(t *testing.T) {
	for _, c := range Clients() {
		t.Run(c.ID, func(t *testing.T) {
			d, _ := newDesk(t, c, false)
			if entry, has, err := c.Entry(d.o.Options); has || err != nil {
				t.Error("without a file: ", entry, has, err)
			}
			d, _ = newDesk(t, c, true)
			if entry, has, err := c.Entry(d.o.Options); has || err != nil {
				t.Error("not connected: ", entry, has, err)
			}
			d.connect(ours)
			entry, has, err := c.Entry(d.o.Options)
			if diff := cmp.Diff(ours, entry); diff != "" || !has || err != nil {
				t.Error("connected: ", has, err, diff)
			}
			d.write([]byte("{ s3cret"))
			_, has, err = c.Entry(d.o.Options)
			if has || err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), d.path) {
				t.Error("a broken file: ", has, err)
			}
		})
	}
}

func TestEntryOfAnotherName(t *testing.T) {
	c, _ := LookupClient("cursor")
	d, _ := newDesk(t, c, false)
	if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
		t.Fatal(err)
	}
	d.write([]byte(`{"mcpServers": {"other": {"command": "x"}, "gate": {"command": "/opt/drawbridge", "args": ["serve", "--naming", "bare"]}}}`))
	entry, has, err := c.Entry(d.o.Options)
	if diff := cmp.Diff(ClientEntry{Command: "/opt/drawbridge", Args: []string{"serve", "--naming", "bare"}},
		entry); diff != "" || !has || err != nil {
		t.Error(has, err, diff)
	}
}

func TestNamed(t *testing.T) {
	w := newWorld(t, map[string]string{"project/a,b.json": "{}"})
	o := w.options()
	o.Paths = []string{"a,b.json", "c.json, d.json", "/e.json"}
	got, err := o.NamedPaths()
	want := []string{w.path("project/a,b.json"), w.path("project/c.json"), w.path("project/d.json"), "/e.json"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}
