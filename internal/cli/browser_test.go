package cli

import (
	"bytes"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// unsafeBrowserURLs are addresses that no browser is given, whoever says so (OA-8, the authorization URL).
var unsafeBrowserURLs = []string{
	"", "-version", "--new-window=http://h/", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd",
	"ms-msdt:/id", "http:", "http://",
	"https:h", "//h/x", "http://h/a b", "http://h/\"", "http://h/'$(x)'", "http://h/`x`", "http://h/\n-x",
	"http://h/<x>", "http://h/\x1b[2J", " http://h/",
}

func TestShowable(t *testing.T) {
	for _, address := range unsafeBrowserURLs {
		if checkBrowserURL(address) == nil {
			t.Errorf("%q would be opened", address)
		}
	}
	for _, address := range []string{"http://127.0.0.1:1/authorize?state=s&x=$(x);y|z", "https://h.example/a?b=c#d",
		"HTTPS://h.example"} {
		if err := checkBrowserURL(address); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func FuzzShowable(f *testing.F) {
	for _, address := range append(unsafeBrowserURLs, "https://h.example/a?b=c") {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if checkBrowserURL(address) != nil {
			return
		}
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(address,
			" \t\r\n\"'`<>\x00\x1b") {
			t.Errorf("%q would be opened", address)
		}
	})
}

func newSignInCommandsWithEnv(variables map[string]string) signInCommands {
	return signInCommands{Err: &bytes.Buffer{}, Environ: os.Environ(), Env: func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}}
}

func TestBrowser(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have programs of their own")
	}
	blank := filepath.Join(t.TempDir(), "my browser")
	if err := os.WriteFile(blank, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		variables map[string]string
		want      []string
		err       string
	}{
		"a program":            {map[string]string{"BROWSER": "sh", "DISPLAY": ":0"}, []string{"sh"}, ""},
		"with words":           {map[string]string{"BROWSER": `sh -c 'a b' "c"`}, []string{"sh", "-c", "a b", "c"}, ""},
		"a path with blanks":   {map[string]string{"BROWSER": blank}, []string{blank}, ""},
		"no end of a quote":    {map[string]string{"BROWSER": `sh "`}, nil, "the variable BROWSER names no program"},
		"blanks only":          {map[string]string{"BROWSER": " "}, nil, "the variable BROWSER names no program"},
		"a display":            {map[string]string{"DISPLAY": ":0"}, []string{"xdg-open"}, ""},
		"a display of Wayland": {map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, []string{"xdg-open"}, ""},
		"nothing":              {nil, nil, "no display was found, and BROWSER is not set"},
	} {
		got, err := newSignInCommandsWithEnv(tt.variables).browserCommand()
		if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil || tt.err != "") &&
			(err == nil || err.Error() != tt.err) {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// TestBrowseGivesOneArgument: whatever is in an address, it is one word to the program, and no shell sees it.
func TestBrowseGivesOneArgument(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	file := filepath.Join(t.TempDir(), "got")
	const address = "https://h.example/a?b=$(touch%20x);c&d=*|e"
	d := newSignInCommandsWithEnv(map[string]string{"BROWSER": `sh -c 'printf "%s\n" "$#" "$1" >` + file +
		`.part; mv ` + file + `.part ` + file + `' x`})
	if err := d.openBrowser(address); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(30 * time.Second)
	for {
		text, err := os.ReadFile(file)
		if err == nil {
			if string(text) != "1\n"+address+"\n" {
				t.Errorf("the browser got %q", text)
			}
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatal("no browser came")
		}
	}
}

func TestBrowseSaysWhyNot(t *testing.T) {
	if err := newSignInCommandsWithEnv(map[string]string{"BROWSER": "no-such-browser"}).openBrowser(
		"https://h.example/"); err == nil || strings.Contains(err.Error(), "h.example") {
		t.Error(err)
	}
	if err := newSignInCommandsWithEnv(map[string]string{"BROWSER": "sh"}).openBrowser(
		"file:///etc/passwd"); err == nil || strings.Contains(err.Error(), "passwd") {
		t.Error(err)
	}
}

func TestStanding(t *testing.T) {
	soon, ago := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for want, c := range map[string]drawbridge.CredentialStatus{
		"not signed in":                              {},
		"needs sign-in":                              {URL: "u"},
		"needs sign-in: it was revoked":              {URL: "u", Problem: "it was revoked"},
		"signed in, until the server says otherwise": {SignedIn: true},
		"signed in, until the server says otherwise; renews itself": {SignedIn: true, AutoRenews: true},
		"signed in until " + formatLocalTime(soon):                  {SignedIn: true, Expires: soon},
		"signed in until " + formatLocalTime(soon) + ", renews itself": {SignedIn: true, Expires: soon,
			AutoRenews: true},
		"the sign-in ended " + formatLocalTime(ago): {SignedIn: true, Expires: ago},
	} {
		if got := admin.DescribeCredential(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A fakeSignInProvider has credentials by the names of servers.
type fakeSignInProvider map[drawbridge.ServerID]fakeSignInManager

type fakeSignInManager struct {
	drawbridge.SignInManager
	c   drawbridge.CredentialStatus
	err error
}

func (p fakeSignInProvider) ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error) {
	if a, ok := p[id]; ok {
		return a, nil
	}
	return nil, errors.New("nobody signs in there")
}

func (a fakeSignInManager) Status() (drawbridge.CredentialStatus, error) { return a.c, a.err }

func TestStandings(t *testing.T) {
	in := drawbridge.CredentialStatus{Server: "in", Name: "signin/in", SignedIn: true, URL: "https://old"}
	begun := drawbridge.CredentialStatus{Server: "begun", Name: "signin/begun", URL: "https://begun"}
	all := admin.ReadCredentialStates(fakeSignInProvider{
		"in":    {c: in},
		"begun": {c: begun},
		"none":  {},
		"said":  {c: drawbridge.CredentialStatus{Server: "said"}},
		"broken": {c: drawbridge.CredentialStatus{Server: "broken", Name: "signin/broken"},
			err: errors.New("the keychain is away")},
	}, []config.Server{{ID: "in"}, {ID: "begun"}, {ID: "none"}, {ID: "said", Auth: &config.Auth{}},
		{ID: "broken"}, {ID: "stdio"}})
	status := func(id drawbridge.ServerID, phase drawbridge.ServerPhase, address string) drawbridge.ServerStatus {
		return drawbridge.ServerStatus{Server: id, Phase: phase, SignIn: address}
	}
	before := []drawbridge.ServerStatus{
		status("in", drawbridge.Ready, ""), status("in", drawbridge.NeedsSignIn, ""),
		status("in", drawbridge.NeedsSignIn, "https://more"),
		status("begun", drawbridge.Idle, ""), status("begun", drawbridge.Faulted, ""),
		status("begun", drawbridge.NeedsSignIn, "https://living"),
		status("begun", drawbridge.Disabled, ""), status("none", drawbridge.NeedsSignIn, ""),
		status("said", drawbridge.Idle, ""),
		status("broken", drawbridge.Idle, ""),
	}
	var got []drawbridge.ServerStatus
	for _, l := range all.AnnotateStatuses(before) {
		got = append(got, l.ServerStatus)
	}
	want := []drawbridge.ServerStatus{
		status("in", drawbridge.Ready, ""), status("in", drawbridge.Idle, ""), status("in", drawbridge.NeedsSignIn,
			"https://more"),
		status("begun", drawbridge.NeedsSignIn, "https://begun"), status("begun", drawbridge.NeedsSignIn,
			"https://begun"), status("begun", drawbridge.NeedsSignIn, "https://living"),
		status("begun", drawbridge.Disabled, ""), status("none", drawbridge.NeedsSignIn, ""),
		status("said", drawbridge.Idle, ""),
		status("broken", drawbridge.NeedsSignIn, ""),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	needed := map[drawbridge.ServerID]string{}
	for _, k := range all.Reports(before) {
		needed[k.Server] = k.SignInReason
	}
	if diff := cmp.Diff(map[drawbridge.ServerID]string{
		"in": "", "begun": "not signed in", "none": "not signed in", "said": "",
		"broken": "the keychain is away",
	}, needed); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	strays := all.UnconfiguredSignIns([]secrets.SecretInfo{{Name: "signin/in"}, {Name: "signin/other"},
		{Name: "values/x"}})
	if diff := cmp.Diff([]string{"other"}, strays); diff != "" {
		t.Errorf("strays (-want +got):\n%s", diff)
	}
}

func TestWhatIsPrinted(t *testing.T) {
	for want, l := range map[string]admin.ServerWithCredential{
		"": {ServerStatus: drawbridge.ServerStatus{Server: "n", Phase: drawbridge.Idle}},
		"  it needs a sign-in: drawbridge mcp auth n\n":                                       {ServerStatus: drawbridge.ServerStatus{Server: "n", Phase: drawbridge.NeedsSignIn}},
		"  it needs a sign-in (it was revoked): drawbridge mcp auth n\n  or open https://h\n": {ServerStatus: drawbridge.ServerStatus{Server: "n", Phase: drawbridge.NeedsSignIn, SignIn: "https://h"}, Credential: &drawbridge.CredentialStatus{Problem: "it was revoked"}, SignInPending: true},
		"  it needs a sign-in: drawbridge mcp auth n\n  or open https://h\n  and pass the last address of the browser to drawbridge mcp auth n --code -\n": {
			ServerStatus: drawbridge.ServerStatus{Server: "n", Phase: drawbridge.NeedsSignIn, SignIn: "https://h"}},
	} {
		var b strings.Builder
		printSignInState(&b, l)
		if b.String() != want {
			t.Errorf("%q, want %q", b.String(), want)
		}
	}
}
