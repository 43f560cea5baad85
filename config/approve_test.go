package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

func TestApproval(t *testing.T) {
	files := map[string]string{
		projectJSON:         `{"servers": {"mine": {"command": "theirs"}, "new": {"command": "x"}, "off": {"command": "x", "enabled": false}, "bad": {}}}`,
		userJSON:            `{"servers": {"mine": {"command": "mine"}, "off": {"command": "x"}, "last": {"command": "x"}}}`,
		"project/.mcp.json": `{"mcpServers": {"new": {"command": "y"}, "last": {"command": "z"}}}`,
	}
	for name, tt := range map[string]struct {
		approved          func(Server) bool
		servers, shadowed []string
	}{
		"nobody approves": {nil,
			[]string{"mine project needs-approval", "new project needs-approval", "off project disabled",
				"bad project refused",
				"mine user idle", "off user idle", "last user idle", "last project needs-approval"},
			[]string{"new project needs-approval"}},
		"all is approved": {func(Server) bool { return true },
			[]string{"mine project idle", "new project idle", "off project disabled", "bad project refused",
				"off user idle", "last user idle"},
			[]string{"mine user idle", "new project idle", "last project idle"}},
		"the later of two": {func(s Server) bool { return s.Command == "y" },
			[]string{"mine project needs-approval", "new project needs-approval", "off project disabled",
				"bad project refused",
				"mine user idle", "off user idle", "last user idle", "new project idle", "last project needs-approval"},
			nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := newWorld(t, files).options()
			asked := 0
			o.Approved = func(s Server) bool {
				asked++
				if s.Phase != drawbridge.NeedsApproval || s.Origin.Kind != OriginProject || s.Hash == "" {
					t.Errorf("asked for %+v", s)
				}
				return tt.approved != nil && tt.approved(s)
			}
			set, err := Load(o)
			if err != nil {
				t.Fatal(err)
			}
			wantDiff(t, "servers", tt.servers, short(set.Servers))
			wantDiff(t, "shadowed", tt.shadowed, short(set.Shadowed))
			if asked != 4 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// TestAProjectLinkedToOthersFilesIsTheirs shows that a project directory cannot bring in what is there to be taken
// over.
func TestAProjectLinkedToOthersFilesIsTheirs(t *testing.T) {
	w := newWorld(t, map[string]string{"home/.cursor/mcp.json": `{"mcpServers": {"a": {"command": "x"}}}`})
	if err := os.Symlink(w.path("home/.cursor"), w.path("project/.cursor")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	wantDiff(t, "servers", []string(nil), short(w.mustLoad(t).Servers))
	wantDiff(t, "found", []string{"a cursor new"}, foundShort(w.mustScan(t).Candidates))
}

// TestAProjectLinkedToTheSettingsBreaksNothing: the person's own file is read as what it is.
func TestAProjectLinkedToTheSettingsBreaksNothing(t *testing.T) {
	w := newWorld(t, map[string]string{
		userTOML:                "[mcp]\nnaming = \"bare\"\n[[mcp.servers]]\nid = \"a\"\ncommand = \"x\"\n",
		"project/.drawbridge/x": "",
	})
	if err := os.Symlink(w.path(userTOML), w.path(projectJSON)); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	set := w.mustLoad(t)
	wantDiff(t, "naming", "bare", set.Settings.Naming)
	wantDiff(t, "servers", []string{"a user idle"}, short(set.Servers))
}

func TestNear(t *testing.T) {
	set := Configuration{Servers: []Server{{ID: "github"}, {ID: "fs"}}}
	for id, want := range map[drawbridge.ServerID]drawbridge.ServerID{"git-hub": "github", "gihub": "github",
		"github": "github", "memory": ""} {
		if got := set.Suggest(id); got != want {
			t.Errorf("near %q is %q, want %q", id, got, want)
		}
	}
}

func TestTheDirectoryAServerStartsIn(t *testing.T) {
	w := newWorld(t, map[string]string{
		userJSON:    `{"servers": {"user": {"command": "x"}, "sub": {"command": "x", "cwd": "sub"}, "web": {"url": "https://h"}}}`,
		projectJSON: `{"servers": {"project": {"command": "x"}, "there": {"command": "x", "cwd": "there"}}}`,
		"one.json":  `{"servers": {"explicit": {"command": "x"}}}`,
	})
	got := map[string]string{}
	for _, s := range append(w.mustLoad(t).Servers, w.mustLoad(t, w.path("one.json")).Servers...) {
		got[string(s.ID)] = s.Cwd
	}
	wantDiff(t, "cwd", map[string]string{
		"user": w.path("home"), "sub": w.path("project/sub"), "web": "", "project": w.path("project"),
		"there": w.path("project/there"), "explicit": w.path("project"),
	}, got)
}

func TestDisabledServers(t *testing.T) {
	w := newWorld(t, map[string]string{
		projectJSON: `{"servers": {"a": {"command": "x"}, "b": {"command": "x"}}, "disabledServers": ["c"]}`,
		userJSON:    `{"servers": {"c": {"command": "x"}, "d": {"command": "x", "enabled": false}}, "disabledServers": ["d", "e", 5]}`,
		legacyJSON:  `{"servers": {"e": {"command": "x"}}, "disabledServers": ["a"]}`,
	})
	set := w.mustLoad(t)
	wantDiff(t, "servers", []string{"a project disabled", "b project needs-approval", "c user idle", "d user disabled",
		"e user disabled"}, short(set.Servers))
	var reasons, files []string
	for _, s := range set.Servers {
		reasons, files = append(reasons, s.Reason), append(files, s.DisabledBy)
	}
	wantDiff(t, "files that turn them off", []string{w.path(legacyJSON), "", "", "", w.path(userJSON)}, files)
	wantDiff(t, "reasons", []string{
		`"disabledServers" of ` + w.path(legacyJSON) + ` names it`,
		"it comes from a project directory and is not approved yet", "",
		`"enabled" is false`,
		`"disabledServers" of ` + w.path(userJSON) + ` names it`,
	}, reasons)
	wantDiff(t, "warnings", []string(nil), w.warnings(set))

	w.write(t, "home/.cursor/mcp.json", `{"mcpServers": {}, "disabledServers": ["c"]}`)
	wantDiff(t, "another program's list", "c user idle", short(w.mustLoad(t).Servers)[2])
	wantDiff(t, "a named file's list", []string{"e explicit disabled"},
		short(w.mustLoad(t, w.path(legacyJSON), w.path(userJSON)).Servers)[:1])
}

func TestValues(t *testing.T) {
	w := newWorld(t, nil)
	w.env = map[string]string{"TOKEN": "s3cret", "EMPTY": "", "BANG": "!rm -rf /", "NAME": "TOKEN", "a b": "x"}
	row, _ := rowOf(t, w, `{"command": "TOKEN", "args": ["TOKEN", "!x"], "env": {
		"NAMED": "TOKEN", "UNSET": "NOT_SET", "EMPTY": "EMPTY", "NONAME": "a b", "CMD": "!op read ${TOKEN}", "BANG": "${BANG}",
		"TWICE": "${NAME}", "QUOTED": "${:-TOKEN}", "BANGED": "${:-!}x", "DOLLAR": "$${TOKEN}", "PART": "x${TOKEN}"}}`)
	wantDiff(t, "env", []NameValue{
		{"NAMED", "s3cret"}, {"UNSET", "NOT_SET"}, {"EMPTY", "EMPTY"}, {"NONAME", "a b"}, {"CMD", "!op read ${TOKEN}"},
		{"BANG", "!rm -rf /"},
		{"TWICE", "TOKEN"}, {"QUOTED", "TOKEN"}, {"BANGED", "!x"}, {"DOLLAR", "${TOKEN}"}, {"PART", "xs3cret"},
	}, row.Env)
	wantDiff(t, "from the environment", []string{"env NAMED from TOKEN"}, row.FromVariables)
	wantDiff(t, "commands", []string{"env CMD"}, row.CommandValues())
	wantDiff(t, "command and args", []string{"TOKEN", "TOKEN", "!x"}, append([]string{row.Command}, row.Args...))

	row, _ = rowOf(t, w, `{"url": "https://h", "headers": {"Authorization": "!gh auth token", "X-Key": "TOKEN"}}`)
	wantDiff(t, "headers", []NameValue{{"Authorization", "!gh auth token"}, {"X-Key", "s3cret"}}, row.Headers)
	wantDiff(t, "from the environment", []string{"header X-Key from TOKEN"}, row.FromVariables)
	wantDiff(t, "commands", []string{"header Authorization"}, row.CommandValues())
}

func TestDeferredValues(t *testing.T) {
	w := newWorld(t, nil)
	w.env = map[string]string{"SET": "s3cret", "REF": "${file:/etc/shadow}"}
	abs := w.path("home/x y")
	row, warnings := rowOf(t, w, `{"command": "x", "env": {
		"HOME_FILE": "${file:~/t}", "NEAR": "a${SET}${file:t}", "FAR": "${file:`+filepath.ToSlash(abs)+`}", "UP": "${file:../t}",
		"KEY": "${keychain:a b}", "CMD": "!op read ${SET}", "BOTH": "x ${command:pass show ~/t}", "PUT": "${REF}",
		"TWICE": "!first", "TWICE": "second", "BACK": "first", "BACK": "${keychain:b}", "NOT": "$${file:t}", "OTHER": "${env:SET}${env:NO}"},
		"auth": {"client_id": "${env:SET}", "clientSecret": "!op read y", "scope": "a ${SET}"}}`)
	near := filepath.Join(w.path("home"), ".config", "drawbridge", "t")
	wantDiff(t, "deferred", []DeferredValue{
		{"env HOME_FILE", []ValuePart{{Kind: FilePart, Text: w.path("home/t")}}},
		{"env NEAR", []ValuePart{{Kind: LiteralPart, Text: "as3cret"}, {Kind: FilePart, Text: near}}},
		{"env FAR", []ValuePart{{Kind: FilePart, Text: abs}}},
		{"env UP", []ValuePart{{Kind: FilePart, Text: w.path("home/.config/t")}}},
		{"env KEY", []ValuePart{{Kind: KeychainPart, Text: "a b"}}},
		{"env CMD", []ValuePart{{Kind: CommandPart, Text: "op read ${SET}"}}},
		{"env BOTH", []ValuePart{{Kind: LiteralPart, Text: "x "}, {Kind: CommandPart, Text: "pass show ~/t"}}},
		{"env BACK", []ValuePart{{Kind: KeychainPart, Text: "b"}}},
		{"auth client_secret", []ValuePart{{Kind: CommandPart, Text: "op read y"}}},
	}, row.DeferredValues)
	wantDiff(t, "env", []NameValue{
		{"HOME_FILE", "${file:~/t}"}, {"NEAR", "a${SET}${file:t}"}, {"FAR", "${file:" + filepath.ToSlash(abs) + "}"},
		{"UP", "${file:../t}"},
		{"KEY", "${keychain:a b}"}, {"CMD", "!op read ${SET}"}, {"BOTH", "x ${command:pass show ~/t}"},
		{"PUT", "${file:/etc/shadow}"},
		{"TWICE", "second"}, {"BACK", "${keychain:b}"}, {"NOT", "${file:t}"}, {"OTHER", "s3cret${env:NO}"},
	}, row.Env)
	wantDiff(t, "auth", &Auth{ClientID: "s3cret", ClientSecret: "!op read y", Scopes: []string{"a", "s3cret"}},
		row.Auth)
	wantDiff(t, "commands", []string{"env CMD", "env BOTH", "auth client_secret"}, row.CommandValues())
	wantDiff(t, "parts", row.DeferredValues[4].Parts, row.DeferredParts("env KEY"))
	wantDiff(t, "warnings", []string{userJSON + `:1: Server "n": variables that are not set were left as written: NO`},
		warnings)
}

// TestWhereNoReferenceStands: what every process can see, and where a row leads, is known before anything is mounted.
func TestWhereNoReferenceStands(t *testing.T) {
	const where = `: values of "env" and "headers", and "client_id" and "client_secret" in "auth" may`
	for members, want := range map[string]string{
		`{"command": "${file:x}"}`:                              `"command" cannot hold ${file:…}` + where,
		`{"command": "x", "args": ["a", "${keychain:s3cret}"]}`: `"args" cannot hold ${keychain:…}` + where,
		`{"command": "x", "cwd": "${command:pwd}"}`:             `"cwd" cannot hold ${command:…}` + where,
		`{"url": "https://h/${file:s3cret}"}`:                   `"url" cannot hold ${file:…}` + where,
		`{"url": "https://h", "auth": {"tokenUrl": "${file:x}"}}`: `"auth.tokenUrl" cannot hold ${file:…}` +
			where,
		`{"url": "https://h", "oauth": {"scopes": ["${command:s3cret}"]}}`: `"oauth.scopes" cannot hold ${command:…}` +
			where,
	} {
		row, _ := rowOf(t, newWorld(t, nil), members)
		if row.Phase != drawbridge.Refused || row.Reason != `Server "n": `+want {
			t.Errorf("%s\n got %s: %s\nwant refused: %s", members, row.Phase, row.Reason, want)
		}
	}
	w := newWorld(t, map[string]string{userTOML: "[serve]\ntoken_file = \"${file:x}\"\n"})
	if _, err := w.load(); err == nil || !strings.Contains(err.Error(), "must do without ${file:…}") {
		t.Errorf("a setting: %v", err)
	}
}

func TestFactsAndChanges(t *testing.T) {
	w := newWorld(t, nil)
	w.env["TOKEN"] = "s3cret"
	facts := func(members string) []NameValue {
		row, _ := rowOf(t, w, members)
		return row.ApprovalFacts()
	}
	before := facts(
		`{"env": {"TOKEN": "${TOKEN}", "OLD": "hunter2"}, "command": "npx", "args": ["-y", "pkg"], "timeout": 5, "cwd": "/srv", "note": "x"}`)
	wantDiff(t, "facts", []NameValue{
		{"command", "npx"}, {"args", `["-y","pkg"]`}, {"env TOKEN", "sha256:9dac7f7736fb9c44"},
		{"env OLD", "sha256:444597f511b76dfd"}, {"cwd", "/srv"},
	}, before)
	w.env["TOKEN"] = "another"
	wantDiff(t, "no changes", []string(nil), ApprovalChanges(before,
		facts(`{"command": "npx", "args": ["-y", "pkg"], "cwd": "/srv", "env": {"TOKEN": "${TOKEN}", "OLD": "hunter2"}}`)))
	wantDiff(t, "changes", []string{
		"command: npx → sh", `args: ["-y","pkg"] → ["-c","x"]`, "env TOKEN: its value changed", "env NEW: added",
		"env_isolation: added (false)",
		"env OLD: removed", "cwd: removed",
	}, ApprovalChanges(before,
		facts(`{"command": "sh", "args": ["-c", "x"], "env": {"TOKEN": "x", "NEW": "y"}, "env_isolation": false}`)))

	for url, want := range map[string][]NameValue{
		"https://h/mcp":                {{"url", "https://h/mcp"}},
		"https://u:pw@h:1/mcp?key=k#x": {{"url", "https://h:1/mcp"}, {"url secrets", ""}},
		"https://${HOST:-h}/a":         {{"url", "https://${HOST:-h}/a"}},
		"https://h?k=v":                {{"url", "https://h"}, {"url secrets", ""}},
		"https://a@b@h":                {{"url", "https://h"}, {"url secrets", ""}},
	} {
		got := facts(`{"url": "` + url +
			`", "auth": {"type": "oauth", "clientSecret": "hunter2", "tokenUrl": "https://as/t?x=y"}, "oauth": false}`)
		for i := range got {
			if got[i].Name == "auth clientSecret" || strings.HasSuffix(got[i].Name, " secrets") {
				if len(got[i].Value) != len("sha256:")+16 {
					t.Errorf("%s: %v", url, got[i])
				}
				got[i].Value = ""
			}
		}
		wantDiff(t, url, append(want, NameValue{"auth type", "oauth"}, NameValue{"auth clientSecret", ""},
			NameValue{"auth tokenUrl", "https://as/t"}, NameValue{"auth tokenUrl secrets", ""},
			NameValue{"oauth", "false"}), got)
	}
	if got := (Server{}).ApprovalFacts(); got != nil {
		t.Errorf("facts of nothing: %v", got)
	}
}

// FuzzLiteralValue shows that what a program takes as it stands reaches a server as it stands, whatever it looks like
// to us and whatever the environment has.
func FuzzLiteralValue(f *testing.F) {
	for _, s := range []string{"plain", "!cmd", "TOKEN", "${TOKEN}", "$${TOKEN}", "${:-x}", "a${", "!${A}$",
		"$", "${A:-b}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted := quoteJSON(s)
		set, err := loadBytes([]byte(`{"mcpServers": {"s": {"command": "x", "args": [`+quoted+`], "env": {"V": `+quoted+
			`}}}}`), "claude-desktop", shapeOf("claude-desktop"))
		if err != nil || len(set.Servers) != 1 {
			t.Fatal(err)
		}
		row, want := set.Servers[0], unquoteJSON(quoted)
		if want == "" {
			return // what is empty says nothing
		}
		if len(row.Env) != 1 || row.Env[0].Value != want || row.Args[0] != want || row.DeferredValues != nil ||
			row.FromVariables != nil || row.Unresolved != nil {
			t.Errorf("%q became env %q, args %q, deferred %v, from %q", want, row.Env, row.Args, row.DeferredValues,
				row.FromVariables)
		}
	})
}

// FuzzForeignReference shows that no text of another program's becomes a reference here: it had no such thing, and who
// wrote the text may be a stranger. Some have commands as a whole.
func FuzzForeignReference(f *testing.F) {
	for _, s := range []string{
		"${file:x}", "a${keychain:x}$${command:id}", "${env:file:x}", "${workspaceFolder}{file:x}",
		"{file:x}${env:A}", "$$${file:x}",
		"${env:A}{file:x}", "$(echo ${file:x})", "${input:a}{file:x}", "%ABC%{file:x}", "$A{file:x}",
		"${A:-${file:x}}", "!x ${file:y}",
	} {
		f.Add(s)
	}
	providers := clientconfig.Providers()
	f.Fuzz(func(t *testing.T, s string) {
		text := configfile.Node{Kind: configfile.Text, Text: s}
		env := configfile.Node{Kind: configfile.Table, Members: []configfile.Member{{Name: "V", Value: text}}}
		value := configfile.Node{Kind: configfile.Table, Members: []configfile.Member{
			{Name: "command", Value: configfile.Node{Kind: configfile.Text, Text: "x"}}, {Name: "env", Value: env},
			{Name: "environment", Value: env}, {Name: "envs", Value: env},
			{Name: "oauth", Value: configfile.Node{Kind: configfile.Table,
				Members: []configfile.Member{{Name: "clientId", Value: text}, {Name: "client_id", Value: text}}}},
		}}
		for _, p := range providers {
			if p.Name == "native" {
				continue
			}
			row, _ := p.Locations[0].Shape.ToNative(clientconfig.ServerRow{Name: "s", Value: value}, "/work/p$")
			data := append(row.AppendJSON([]byte(`{"servers": {"s": `), false), "}}"...)
			set, err := loadBytes(data, "native", clientconfig.NativeDialect("a.json"))
			if err != nil || len(set.Servers) != 1 {
				t.Fatalf("%s of %s: %v", data, p.Name, err)
			}
			for _, d := range set.Servers[0].DeferredValues {
				if len(d.Parts) != 1 || d.Parts[0].Kind != CommandPart || set.Servers[0].Env[0].Value != "!"+
					d.Parts[0].Text {
					t.Errorf("%q of %s became %s", s, p.Name, data)
				}
			}
		}
	})
}
