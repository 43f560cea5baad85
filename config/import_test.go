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
	row := func(name drawbridge.ServerID, status ScanStatus, text string) Found {
		return Found{Name: name, Status: status, Row: json.RawMessage(text)}
	}
	const before = "{\n  // mine\n  \"servers\": [{\"name\": \"a\", \"command\": \"a\"}]\n}\n"
	for name, tt := range map[string]struct {
		before string
		found  []Found
		taken  []drawbridge.ServerID
		after  string
		err    string
	}{
		"what is new": {
			before: before,
			found: []Found{
				row("b", New, `{"command":"b","imported_from":"zed"}`), row("c", Same, `{"command":"c"}`), row("d", Shadowed, `{"command":"d"}`),
				row("e", Conflict, `{"command":"e"}`), row("f", Barred, ``), row("g", New, `{"url":"https://g.example.com"}`),
			},
			taken: []drawbridge.ServerID{"b", "g"},
			after: "{\n  // mine\n  \"servers\": [{\"name\": \"a\", \"command\": \"a\"}, {\"name\": \"b\", \"command\": \"b\", \"imported_from\": \"zed\"}, " +
				"{\"name\": \"g\", \"url\": \"https://g.example.com\"}]\n}\n",
		},
		"nothing": {before: before, found: []Found{row("c", Same, `{"command":"c"}`)}, after: before},
		"all or nothing": {
			before: before, found: []Found{row("b", New, `{"command":"b"}`), row("a", New, `{"command":"x"}`)}, after: before,
			err: `Server "a" already exists in $FILE`,
		},
		"no server": {before: before, found: []Found{row("b", New, `{}`)}, after: before,
			err: `Invalid server config: Server "b": stdio server requires "command" field`},
		"a broken file": {before: "{", found: []Found{row("b", New, `{"command":"b"}`)}, after: "{",
			err: "read $FILE: line 2, column 1: this is not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mcp.json")
			if err := os.WriteFile(path, []byte(tt.before), 0o600); err != nil {
				t.Fatal(err)
			}
			taken, err := TakeOver(path, tt.found)
			if err == nil && tt.err != "" || err != nil && (tt.err == "" || !strings.HasPrefix(strings.ReplaceAll(err.Error(), path, "$FILE"), tt.err)) {
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
	if taken, err := TakeOver(path, []Found{{Name: "a", Status: Same}}); taken != nil || err != nil {
		t.Error(taken, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Error("nothing was taken over, and a directory was made")
	}
	if _, err := TakeOver(path, []Found{{Name: "a", Status: New, Row: json.RawMessage(`{"command":"a"}`)}}); err != nil {
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
	if diff := cmp.Diff(Entry{Command: "/opt/drawbridge", Args: []string{"serve", "--naming", "bare"}}, entry); diff != "" || !has || err != nil {
		t.Error(has, err, diff)
	}
}

func TestNamed(t *testing.T) {
	w := newWorld(t, map[string]string{"project/a,b.json": "{}"})
	o := w.options()
	o.Paths = []string{"a,b.json", "c.json, d.json", "/e.json"}
	got, err := o.Named()
	want := []string{w.path("project/a,b.json"), w.path("project/c.json"), w.path("project/d.json"), "/e.json"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestPlainSecrets(t *testing.T) {
	for row, want := range map[string]string{
		`{"env": {"GITHUB_TOKEN": "abcdef123"}}`:                                                                     "env GITHUB_TOKEN",
		`{"env": {"githubToken": "abcdef123", "apikey": "abcdef"}}`:                                                  "env apikey, env githubToken",
		`{"env": {"X": "ghp_abc", "Y": "sk-abc", "Z": "xoxb-1"}}`:                                                    "env X, env Y, env Z",
		`{"env": {"GITHUB_TOKEN": "${T}", "B_TOKEN": "!pass b", "C_TOKEN": "MY_C"}}`:                                 "",
		`{"env": {"D_TOKEN": "$(op read d)", "KEYBOARD": "german", "MONKEY": "banana"}}`:                             "",
		`{"env": {"TOKEN_FILE": "abcdefgh", "KEY": "/run/key", "TOKEN": "", "AUTH": "true", "MAX_TOKEN": "100000"}}`: "",
		`{"headers": {"Authorization": "Bearer abc", "Accept": "a/b"}}`:                                              "header Authorization",
		`{"headers": {"Authorization": "Bearer ${T}", "X-Api-Key": "abcdefgh"}}`:                                     "header X-Api-Key",
		`{"args": ["--token", "abcdefgh", "--api-key=abcdefgh", "--level", "high"]}`:                                 "args --api-key, args --token",
		`{"args": ["--token", "--verbose", "ghp_abcdef"]}`:                                                           "args 3",
		`{"args": ["postgres://me:abcdef@db/x"]}`:                                                                    "args 1",
		`{"url": "https://h/mcp?key=abcdefgh&page=2"}`:                                                               "url key",
		`{"url": "https://me:pw@h/mcp"}`:                                                                             "url password",
		`{"url": "https://${HOST}/mcp?key=abcdefgh"}`:                                                                "url key",
		`{"url": "https://me:pw@h/${PATH}"}`:                                                                         "url password",
		`{"url": "https://ghp_abcdef@h/mcp#token=abcdefgh"}`:                                                         "url token, url user",
		`{"args": ["-y", "mcp-remote", "--header", "Authorization: Bearer abc"]}`:                                    "args Authorization",
		`{"args": ["--header=X-Api-Key:abcdefgh", "--url=https://h/?key=abcdefgh"]}`:                                 "args --header=X-Api-Key, args 2",
		`{"args": ["--header", "Authorization: ${AUTH}", "C:\\key", "key: /run/key"]}`:                               "",
		`{"url": "https://me:${PW}@h/mcp?key=${KEY}"}`:                                                               "",
		`{"auth": {"client_secret": "abcdefgh", "client_id": "abcdefgh"}}`:                                           "auth client_secret",
		`no row`: "",
	} {
		if got := strings.Join(PlainSecrets(json.RawMessage(row)), ", "); got != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
}

func TestRuns(t *testing.T) {
	for row, want := range map[string]string{
		`{"command": "npx", "args": ["-y", "pkg", "a b", "${HOME}", ""]}`:                                     `npx -y pkg "a b" ${HOME} ""`,
		`{"command": "x", "args": ["--token", "s3cret00", "--api-key=s3cret00"]}`:                             `x --token … --api-key=…`,
		`{"command": "x", "args": ["postgres://me:s3cret@db/x", "ghp_s3cret"]}`:                               `x postgres://…@db/x …`,
		`{"url": "https://me:s3cret@h/mcp?key=s3cret00&page=2"}`:                                              `https://…@h/mcp?key=…&page=2`,
		`{"url": "https://me:s3@cret@${HOST}/a@b?page=2&key=s3cret00#x"}`:                                     `https://…@${HOST}/a@b?page=2&key=…#x`,
		`{"command": "npx", "args": ["mcp-remote", "https://h", "--header", "Authorization: Bearer s3cret"]}`: `npx mcp-remote https://h --header "Authorization: …"`,
		`{"command": "x", "args": ["\u001b[31mred"]}`:                                                         "x \ufffd[31mred",
		`{}`: "", ``: "",
	} {
		if got := (Server{Row: json.RawMessage(row)}).Runs(); got != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
}

// FuzzPlainSecrets: what is shown of a row has no secret in it that is pointed at, whatever the row is.
func FuzzPlainSecrets(f *testing.F) {
	f.Add("--token", "abcdefgh", "https://me:abcdefgh@h/mcp?key=abcdefgh")
	f.Add("x", "ghp_abcdefgh", "https://h/mcp?a=b&token=abcdefgh#x")
	f.Fuzz(func(t *testing.T, name, value, address string) {
		row, err := json.Marshal(map[string]any{"command": "x", "args": []string{name, value, address}, "url": address, "env": map[string]string{name: value}})
		if err != nil {
			t.Skip()
		}
		PlainSecrets(row)
		(Server{Row: row}).Runs()
		shown, hidden := hideURL(address)
		if len(hidden) == 0 && shown != address {
			t.Errorf("%q is shown as %q, and nothing is hidden", address, shown)
		}
		if _, again := hideURL(shown); len(hidden) > 0 && len(again) > 0 && strings.Contains(shown, "abcdefgh") {
			t.Errorf("%q is shown as %q, which has %q in it", address, shown, again)
		}
	})
}
