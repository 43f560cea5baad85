// Package confine keeps the program of a stdio server to what its row names.
//
// A confined program reads the system's own directories, the program itself and what its row lets it read; it writes
// its working directory, a home of its own and what its row lets it write; it reaches no socket of the machine's other
// programs and no other process, and where the row says so no network. What of this the kernel offers is found out
// before anything is started: a row that requires it starts with no less, or not at all. Only Linux has it: Landlock
// for files and signals, a filter of system calls for the rest.
//
// It is no jail for a program that means harm and has the network: what it may read it may send. Names, sizes and
// modes of files are not hidden, and the modes, times and attributes of files that belong to its user it may change;
// as root, owners too.
package confine

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// ReexecName is argv[0] of our executable where it is run to confine itself and then become the program. Behind it
// come the cage, the program's path, and its whole argv.
const ReexecName = "drawbridge-confine"

// A Profile is what a program is kept to. Paths are absolute.
type Profile struct {
	// Required says that the program must not start with less.
	Required bool
	// Read and Write are what the row lets it read, and write too: files and directories, which must be there.
	Read, Write []string
	// Offline keeps it from the network.
	Offline bool
	// Home is the program's own home, which is made where it is missing. The person's, UserHome, is not its.
	Home, UserHome string
	// Temp is its own directory for what is passing: Prepare makes it, beneath Home.
	Temp string
	// Dir is where it starts; it may write there, unless that is UserHome or holds it: then it starts in Home.
	Dir string
	// RowVariables are the names of the variables that the row sets: they stay as they are.
	RowVariables []string
}

// ProfileFor gives the cage of a row, and nil for one that wants none. Environ is the environment that the server gets
// its own from, principal whose process it is: no two share a home.
func ProfileFor(row config.Server, environ []string, principal string) *Profile {
	if row.Confine.Level == "" || row.Command == "" {
		return nil
	}
	c := &Profile{
		Required: row.Confine.Level == config.ConfineRequired, Offline: row.Confine.Offline,
		Read: row.Confine.Read, Write: row.Confine.Write, Dir: row.Cwd, UserHome: lookupVariable(environ, "HOME"),
	}
	for _, p := range row.Env {
		c.RowVariables = append(c.RowVariables, p.Name)
	}
	cache := lookupVariable(environ, "XDG_CACHE_HOME")
	if !filepath.IsAbs(cache) && filepath.IsAbs(c.UserHome) {
		cache = filepath.Join(c.UserHome, ".cache")
	}
	if filepath.IsAbs(cache) {
		sum := sha256.Sum256([]byte(row.Hash + "\x00" + principal))
		c.Home = filepath.Join(cache, "drawbridge", "homes", string(row.ID)+"-"+hex.EncodeToString(sum[:6]))
	}
	return c
}

// A Support is what a system offers to confine programs with.
type Support struct {
	// Landlock is the version of its interface, 0 where there is none.
	Landlock int
	// Seccomp says that system calls can be filtered.
	Seccomp bool
	// MissingReason says what is missing altogether; empty where something is there.
	MissingReason string
}

// The versions of Landlock that matter: with the first all ways to change a file are covered (Linux 6.2), with the
// second signals and abstract sockets are (6.12), with the third sockets in the file system.
const (
	landlockFiles   = 3
	landlockSignals = 6
	landlockSockets = 9
)

// An UnsupportedError is for a program that must not start with what the system offers: Why says what is missing.
type UnsupportedError struct{ Why string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf(`confine = "required" cannot be kept: %s (confine = "auto" starts it with what there is)`, e.Why)
}

// FaultCode says that to try again is of no use.
func (e *UnsupportedError) FaultCode() drawbridge.FaultCode { return drawbridge.PolicyBlocked }

// CheckSupport says what the system lacks for a cage that is required; nil where it lacks nothing, or nothing is
// required.
func (c Profile) CheckSupport(r Support) error {
	var why string
	switch {
	case !c.Required:
		return nil
	case r.MissingReason != "":
		why = r.MissingReason
	case r.Landlock < landlockFiles:
		why = fmt.Sprintf("this kernel has Landlock %d, and %d is needed (Linux 6.2 or newer)",
			r.Landlock, landlockFiles)
	case !r.Seccomp:
		why = "this kernel, or this processor, has no filter of system calls that is known here"
	case c.Home == "":
		why = noHome
	default:
		return nil
	}
	return &UnsupportedError{why}
}

// Describe says in words what a cage keeps a program from with what the system offers, such as "files, sockets,
// signals", or why that is nothing; any says whether it is something.
func (c Profile) Describe(r Support) (words string, any bool) {
	why := r.MissingReason
	if why == "" && c.Home == "" {
		why = noHome
	}
	if why != "" {
		return "nothing: " + why, false
	}
	files, all := "files", []string{}
	if r.Landlock < landlockFiles {
		files = "files (but for how long they are)"
	}
	for _, one := range []struct {
		word string
		ok   bool
	}{{files, true}, {"sockets", r.Seccomp || r.Landlock >= landlockSockets},
		{"signals", r.Landlock >= landlockSignals}, {"network", c.Offline && r.Seccomp}} {
		if one.ok {
			all = append(all, one.word)
		}
	}
	return strings.Join(all, ", "), true
}

const noHome = "there is no place for a home of its own: HOME is not set"

// Prepare makes the home, with a way in it to each thing that the row names within the person's home, so that programs
// find it where they look. The error is for a home that cannot be made, and for what the row names and is not there.
func (c *Profile) Prepare() error {
	for _, p := range slices.Concat(c.Read, c.Write) {
		if _, err := os.Stat(p); err != nil {
			return fmt.Errorf("confine: %s is not there, or cannot be looked at", p)
		}
	}
	if err := c.makeHomeLinks(); err != nil {
		return fmt.Errorf("confine: make a home: %v", err)
	}
	return nil
}

// tempParent is where in a home the directories are for what is passing.
const tempParent = ".tmp"

// makeHomeLinks makes what is in the home. The program has written there before, and we are not confined: nothing of
// ours follows a link out of it.
func (c *Profile) makeHomeLinks() error {
	if err := os.MkdirAll(c.Home, 0o700); err != nil {
		return err
	}
	home, err := os.OpenRoot(c.Home)
	if err != nil {
		return err
	}
	defer home.Close()
	for _, p := range slices.Concat(c.Read, c.Write) {
		rel, err := filepath.Rel(c.UserHome, p)
		if err != nil || rel == "." || !filepath.IsLocal(rel) {
			continue
		}
		// else it is within another that is named, or the program's doing
		if home.MkdirAll(filepath.Dir(rel), 0o700) == nil {
			_ = home.Symlink(p, rel) // what is there stays
		}
	}
	if info, err := home.Lstat(tempParent); err == nil && !info.IsDir() {
		_ = home.Remove(tempParent)
	}
	temp := filepath.Join(tempParent, rand.Text())
	if err := home.MkdirAll(temp, 0o700); err != nil {
		return err
	}
	c.Temp = filepath.Join(c.Home, temp)
	return nil
}

// RemoveTemp takes away what was the program's for the time it ran.
func (c Profile) RemoveTemp() {
	home, err := os.OpenRoot(c.Home)
	if err != nil {
		return
	}
	defer home.Close()
	_ = home.RemoveAll(filepath.Join(tempParent, filepath.Base(c.Temp))) // what cannot be taken away does no harm
}

// Environ gives the program's environment: its home and its directory for what is passing are its own, unless the row
// says where they are, and nothing leads to the person's.
func (c Profile) Environ(env []string) []string {
	moved := []string{"HOME=" + c.Home, "TMPDIR=" + c.Temp}
	out := make([]string, 0, len(env)+len(moved))
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(c.RowVariables, name) || !isHomeVariable(name) {
			out = append(out, v)
		}
	}
	for _, v := range moved {
		if name, _, _ := strings.Cut(v, "="); !slices.Contains(c.RowVariables, name) {
			out = append(out, v)
		}
	}
	return out
}

// isHomeVariable says whether a variable of the base environment says where the person's own files are.
func isHomeVariable(name string) bool {
	return name == "HOME" || name == "TMPDIR" || strings.HasPrefix(name, "XDG_")
}

// lookupVariable finds a variable; of a name that is there twice the last counts.
func lookupVariable(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if n, value, ok := strings.Cut(v, "="); ok && n == name {
			return value
		}
	}
	return ""
}
