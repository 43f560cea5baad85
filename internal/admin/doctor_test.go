package admin_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/google/go-cmp/cmp"
)

// loadConfigFiles reads a project's and a person's configuration in a home of their own.
func loadConfigFiles(t *testing.T, project, own string) (config.Configuration, string) {
	t.Helper()
	home := t.TempDir()
	for name, content := range map[string]string{"project/.mcp.json": project, ".config/drawbridge/mcp.json": own} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := config.Load(config.Options{
		Home: home, Dir: filepath.Join(home, "project"), LookupEnv: func(string) (string, bool) { return "", false },
	})
	if err != nil {
		t.Fatal(err)
	}
	return set, home
}

func TestDoctorDecisions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths have slashes")
	}
	set, home := loadConfigFiles(t, `{"mcpServers": {"no": {"command": "x", "mood": 1}, "maybe": {"command": "x"}}}`,
		`{"servers": {}}`)
	r := admin.NewDoctorReport()
	r.CheckConfig(admin.DoctorInput{Set: set, Rejected: func(s config.Server) bool { return s.ID == "no" }})
	at := home + "/project/.mcp.json:1"
	want := &admin.DoctorReport{
		Problems: []admin.Finding{{
			About: `server "maybe"`, Source: at,
			Text: "it needs approval: it comes from a project directory and is not approved yet",
			Fix:  "look at it, then drawbridge mcp approve maybe, or drawbridge mcp reject maybe",
		}},
		Notes: []admin.Finding{
			{About: `server "no"`, Source: at, Text: `unknown member "mood" was left out`},
			{About: `server "no"`, Source: at, Text: "it was rejected, and stays off"},
		},
		Servers: []admin.ServerLaunch{},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
}

func TestDoctorServers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are those of Unix")
	}
	set, home := loadConfigFiles(t, `{"mcpServers": {}}`, `{"mcpServers": {
		"all": {"command": "sh", "env_isolation": false, "env": {"MODE": "x"}},
		"few": {"command": "sh", "env": {"PATH": "/nowhere"}},
		"web": {"url": "https://me:s3cret@h.example.com/mcp"}}}`)
	said := []string{"env TOKEN is left out: the command ended with 1",
		"env GONE is left out: the file /y is not there", "env FILE is left out: the file /x: it is empty",
		"a card is hidden"}
	fault := drawbridge.ServerStatus{Phase: drawbridge.Faulted, Fault: "connect: connection refused"}
	r := admin.NewDoctorReport()
	r.CheckConfig(admin.DoctorInput{
		Set: set, Statuses: []drawbridge.ServerStatus{fault, fault, {Phase: drawbridge.Idle,
			Fault: "it was long ago", Notes: said}},
		Environ: []string{"PATH=/bin", "HOME=" + home, "OTHER=y", "DRAWBRIDGE_TOKEN=z"},
	})
	file := home + "/.config/drawbridge/mcp.json"
	want := &admin.DoctorReport{
		Problems: []admin.Finding{
			{About: `server "all"`, Source: file + ":2", Fix: "Check that the server is running and that its URL is right.",
				Text: "it did not work when it was last started: connect: connection refused"},
			{About: `server "few"`, Source: file + ":3",
				Text: `its program cannot be started: command "sh" not found on PATH`,
				Fix:  `install it, write its absolute path, or give the row a PATH in "env"`},
			{About: `server "web"`, Source: file + ":4", Text: "env TOKEN is left out: the command ended with 1",
				Fix: "run the command in a shell: it must print the value within ten seconds"},
			{About: `server "web"`, Source: file + ":4", Text: "env FILE is left out: the file /x: it is empty",
				Fix: "mend what it refers to, then drawbridge mcp reload"},
		},
		Notes: []admin.Finding{
			{About: `server "web"`, Source: file + ":4",
				Text: "in plain text, and it looks like a secret: url password",
				Fix:  "write ${NAME} for a variable, ${file:PATH}, ${keychain:NAME}, or !COMMAND"},
			{About: `server "web"`, Source: file + ":4", Text: "a card is hidden"},
		},
		Servers: []admin.ServerLaunch{
			{Name: "all", Transport: "stdio", Target: "sh", Program: "/bin/sh", Dir: home,
				Env: []string{"DRAWBRIDGE_MOUNTED", "HOME", "MODE", "OTHER", "PATH"}, Source: file + ":2"},
			{Name: "few", Transport: "stdio", Target: "sh", Dir: home, Env: []string{"DRAWBRIDGE_MOUNTED", "HOME",
				"PATH"}, Source: file + ":3",
				Findings: []config.LaunchFinding{{Code: "steering-variable",
					Text: "the variable PATH decides which programs or packages are found, or where what is sent goes"}}},
			{Name: "web", Transport: "http or sse", Target: "https://…@h.example.com/mcp", Source: file + ":4"},
		},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
}

func TestDoctorFaultWithoutTip(t *testing.T) {
	r := admin.NewDoctorReport()
	r.AddFault(config.Server{ID: "a", Origin: config.Origin{Path: "/x", Line: 1}}, errors.New("it broke"))
	want := []admin.Finding{{About: `server "a"`, Source: "/x:1",
		Text: "it did not work when it was last started: it broke", Fix: "see what it says: drawbridge mcp test a"}}
	if diff := cmp.Diff(want, r.Problems); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
}

// oneSecret is a keychain with one entry, which has this name.
type oneSecret string

func (k oneSecret) Get(name string) ([]byte, error) {
	if name != string(k) {
		return nil, errors.New("nothing has that name")
	}
	return []byte("s3cret"), nil
}

func TestDoctorReferences(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are those of Unix")
	}
	set, home := loadConfigFiles(t, `{"mcpServers": {}}`, `{"mcpServers": {
		"a": {"command": "sh", "env": {"HERE": "${file:mcp.json}", "GONE": "x ${file:~/gone}", "DIR": "${file:~/project}", "UNSET": "${env:UNSET}",
			"KEPT": "${keychain:one}", "LOST": "${keychain:two}", "CMD": "!touch ran", "MID": "a ${command:touch\u0007 ran}"}},
		"b": {"url": "https://h", "auth": {"client_id": "id", "client_secret": "${file:secret}"}}}}`)
	file := home + "/.config/drawbridge/mcp.json"
	problems := []admin.Finding{
		{About: `server "a"`, Source: file + ":2", Text: "variables that are not set: UNSET",
			Fix: "set them where the client starts Drawbridge, or write a default: ${NAME:-text}"},
		{About: `server "a"`, Source: file + ":2", Text: "env GONE: the file " + home + "/gone is not there",
			Fix: "put the value there, or name another file"},
		{About: `server "a"`, Source: file + ":2", Text: "env DIR: the file " + home +
			"/project: it is not a regular file", Fix: "put the value there, or name another file"},
		{About: `server "a"`, Source: file + ":2",
			Text: `env LOST: "two" is not in the keychain: nothing has that name`,
			Fix:  "drawbridge secret set two; or take the reference out"},
		{About: `server "b"`, Source: file + ":4", Text: "auth client_secret: the file " + home +
			"/.config/drawbridge/secret is not there",
			Fix: "put the value there, or name another file"},
	}
	commands := admin.Finding{About: `server "a"`, Source: file + ":2",
		Text: "values that are the output of a command, which runs when the server starts: env CMD (touch ran), env MID (touch\\u0007 ran)"}
	r := admin.NewDoctorReport()
	r.CheckConfig(admin.DoctorInput{Set: set, Environ: []string{"PATH=/bin"}, Secrets: oneSecret("one")})
	if diff := cmp.Diff(problems, r.Problems); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
	if diff := cmp.Diff([]admin.Finding{commands}, r.Notes); diff != "" {
		t.Error("(-want +got):\n", diff)
	}

	r = admin.NewDoctorReport()
	r.CheckConfig(admin.DoctorInput{Set: set, Environ: []string{"PATH=/bin"}})
	later := func(name, key string) admin.Finding {
		return admin.Finding{About: `server "a"`, Source: file + ":2", Text: name +
			" is looked up in the keychain when the server starts: " + key}
	}
	if diff := cmp.Diff([]admin.Finding{later("env KEPT", `"one"`), later("env LOST", `"two"`), commands},
		r.Notes); diff != "" {
		t.Error("without a keychain (-want +got):\n", diff)
	}
}
