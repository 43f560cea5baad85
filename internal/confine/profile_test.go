package confine

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/google/go-cmp/cmp"
)

func TestOf(t *testing.T) {
	row := config.Server{ID: "s", Hash: "h", Command: "x", Cwd: "/w", Env: []config.NameValue{{Name: "A", Value: "b"}}}
	if c := ProfileFor(row, []string{"HOME=/me"}, "p"); c != nil {
		t.Errorf("a row that wants none has %+v", c)
	}
	row.Confine = config.Confinement{Level: "required", Read: []string{"/r"}, Write: []string{"/w"}, Offline: true}
	home := ProfileFor(row, []string{"HOME=/me"}, "p").Home
	for name, tt := range map[string]struct {
		environ   []string
		principal string
		home      string
		same      bool
	}{
		"as before":         {[]string{"HOME=/me", "X=y"}, "p", "/me/.cache/drawbridge/homes", true},
		"another principal": {[]string{"HOME=/me"}, "q", "/me/.cache/drawbridge/homes", false},
		"a cache elsewhere": {[]string{"HOME=/me", "XDG_CACHE_HOME=/c"}, "p", "/c/drawbridge/homes", false},
		"a relative cache":  {[]string{"HOME=/me", "XDG_CACHE_HOME=c"}, "p", "/me/.cache/drawbridge/homes", true},
	} {
		got := ProfileFor(row, tt.environ, tt.principal)
		if filepath.Dir(got.Home) != tt.home || (got.Home == home) != tt.same {
			t.Errorf("%s: a home at %s, the first at %s", name, got.Home, home)
		}
		got.Home = ""
		want := &Profile{Required: true, Read: []string{"/r"}, Write: []string{"/w"}, Offline: true, UserHome: "/me",
			Dir: "/w", RowVariables: []string{"A"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := ProfileFor(row, nil, "p"); got.Home != "" {
		t.Errorf("a home at %s, of nobody", got.Home)
	}
}

// TestWhatIsKept shows, for each kernel there may be, what is kept and what is refused: a cage that is required fails
// closed.
func TestWhatIsKept(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cage    Profile
		reach   Support
		reached string
		any     bool
		unmet   string
	}{
		{"all there is", Profile{Home: "/h", Offline: true}, Support{Landlock: 7, Seccomp: true},
			"files, sockets, signals, network", true, ""},
		{"with a network", Profile{Home: "/h"}, Support{Landlock: 9, Seccomp: true},
			"files, sockets, signals", true, ""},
		{"an older kernel", Profile{Home: "/h"}, Support{Landlock: 3, Seccomp: true}, "files, sockets", true, ""},
		{"the oldest", Profile{Home: "/h"}, Support{Landlock: 1, Seccomp: true},
			"files (except truncation), sockets", true,
			"this kernel has Landlock 1, and 3 is needed (Linux 6.2 or newer)"},
		{"no filter", Profile{Home: "/h", Offline: true}, Support{Landlock: 6}, "files, signals", true,
			"this kernel, or this processor, does not support a filter of system calls that Drawbridge knows"},
		{"no Landlock", Profile{Home: "/h"}, Support{MissingReason: "none"}, "nothing: none", false, "none"},
		{"no home", Profile{}, Support{Landlock: 7, Seccomp: true},
			"nothing: no place for a home of its own: HOME is not set", false,
			"no place for a home of its own: HOME is not set"},
		{"nothing known", Profile{Home: "/h"}, Support{}, "files (except truncation)", true,
			"this kernel has Landlock 0, and 3 is needed (Linux 6.2 or newer)"},
	} {
		if words, any := tt.cage.Describe(tt.reach); words != tt.reached || any != tt.any {
			t.Errorf("%s: %q, %v", tt.name, words, any)
		}
		if err := tt.cage.CheckSupport(tt.reach); err != nil {
			t.Errorf("%s: %v, and it is not required", tt.name, err)
		}
		tt.cage.Required = true
		err, want := tt.cage.CheckSupport(tt.reach), ""
		if tt.unmet != "" {
			want = `confine = "required" cannot be met: ` + tt.unmet +
				` (confine = "auto" starts it with the confinement that the system supports)`
		}
		if got := ""; err != nil && err.Error() != want || err == nil && want != got {
			t.Errorf("%s, required: %v", tt.name, err)
		}
	}
}

func TestEnviron(t *testing.T) {
	c := Profile{Home: "/own", Temp: "/own/.tmp/1", RowVariables: []string{"XDG_DATA_HOME"}}
	env := []string{"PATH=/bin", "HOME=/me", "XDG_CONFIG_HOME=/me/.config", "TMPDIR=/tmp", "XDG_DATA_HOME=/data", "A=b"}
	want := []string{"PATH=/bin", "XDG_DATA_HOME=/data", "A=b", "HOME=/own", "TMPDIR=/own/.tmp/1"}
	if diff := cmp.Diff(want, c.Environ(env)); diff != "" {
		t.Error(diff)
	}
	c.RowVariables = []string{"HOME"}
	if diff := cmp.Diff([]string{"HOME=/me", "TMPDIR=/own/.tmp/1"}, c.Environ([]string{"HOME=/me"})); diff != "" {
		t.Error(diff)
	}
}

// TestTheWayToWhatIsNamed: what a row names within the person's home is found in the program's.
func TestTheWayToWhatIsNamed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nothing is confined there")
	}
	base := t.TempDir()
	me := filepath.Join(base, "me")
	for _, dir := range []string{".config/gh", ".aws/sso"} {
		if err := os.MkdirAll(filepath.Join(me, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := Profile{
		Home: filepath.Join(base, "own"), UserHome: me, Write: []string{filepath.Join(me, ".aws/sso")},
		Read: []string{filepath.Join(me, ".config/gh"), filepath.Join(me, ".aws"), me, base},
	}
	for range 2 { // the second time all is there
		if err := c.Prepare(); err != nil {
			t.Fatal(err)
		}
	}
	for link, want := range map[string]string{".config/gh": me + "/.config/gh", ".aws": me + "/.aws",
		".aws/sso": me + "/.aws/sso"} {
		if got, err := filepath.EvalSymlinks(filepath.Join(c.Home, link)); err != nil || got != want {
			t.Errorf("%s leads to %s, %v", link, got, err)
		}
	}
	if info, err := os.Stat(c.Home); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the home: %v, %v", info.Mode(), err)
	}
}

// TestNothingFollowsALinkOutOfAHome: the program had it to itself, and may have left links where we go next.
func TestNothingFollowsALinkOutOfAHome(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nothing is confined there")
	}
	base := t.TempDir()
	me, own := filepath.Join(base, "me"), filepath.Join(base, "own")
	for _, dir := range []string{"me/.config/gh", "me/.ssh", "own"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{".tmp", ".config"} {
		if err := os.Symlink(filepath.Join(me, ".ssh"), filepath.Join(own, link)); err != nil {
			t.Fatal(err)
		}
	}
	c := Profile{Home: own, UserHome: me, Read: []string{filepath.Join(me, ".config/gh")}}
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(me, ".ssh")); err != nil || len(left) > 0 {
		t.Errorf("%v was made outside, %v", left, err)
	}
	if info, err := os.Stat(c.Temp); err != nil || !info.IsDir() {
		t.Errorf("no temporary directory at %s: %v", c.Temp, err)
	}
	if err := os.WriteFile(filepath.Join(me, ".ssh", filepath.Base(c.Temp)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(own, ".tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(me, ".ssh"), filepath.Join(own, ".tmp")); err != nil {
		t.Fatal(err)
	}
	c.RemoveTemp()
	if _, err := os.Stat(filepath.Join(me, ".ssh", filepath.Base(c.Temp))); err != nil {
		t.Errorf("something outside was taken away: %v", err)
	}
}

// TestGrants: nothing that holds the person's home is granted, however the program and its PATH lead there.
func TestGrants(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nothing is confined there")
	}
	c := Profile{Home: "/me/.cache/own", UserHome: "/me", Dir: "/me", Read: []string{"/r"}, Write: []string{"/w"}}
	got := c.grantsOf("/me/x", "/me:/:rel:/me/.local/bin:/srv/tools:/me/..")
	var more []string
	for _, p := range got.system {
		known := false
		for _, s := range systemPaths() {
			known = known || s == p
		}
		if !known {
			more = append(more, p)
		}
	}
	want := []string{
		"/me/.local/bin", "/me/.local/lib", "/me/.local/lib64", "/me/.local/libexec", "/me/.local/pyvenv.cfg",
		"/me/.local/version", "/me/.local/versions", "/me/x", "/srv/tools",
	}
	if diff := cmp.Diff(want, more); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{"/r"}, {"/w", "/me/.cache/own"}}, [][]string{got.read, got.write}); diff != "" {
		t.Error(diff)
	}
	c.Dir = "/me/project"
	if diff := cmp.Diff([]string{"/w", "/me/.cache/own", "/me/project"}, c.grantsOf("/bin/x", "").write); diff != "" {
		t.Error(diff)
	}
}
