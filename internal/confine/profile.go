// Package confine restricts the program of a stdio server to the resources that its row names.
//
// A confined program reads the system's directories, its own files and the paths that its row permits. It writes its
// working directory, a home of its own and the paths that its row permits. It reaches no socket of other programs on
// the machine, no other process, and, if the row asks for it, no network. The support of the kernel is detected before
// a program starts: a row that requires confinement never starts with less. Only Linux supports it: Landlock for files
// and signals, a filter of system calls for the rest.
//
// It does not contain a malicious program that has the network: what that program may read, it may send. Names, sizes
// and modes of files are not hidden. The program may change modes, times and attributes of files that belong to its
// user; as root, owners too.
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

// ReexecName is argv[0] of our executable when it runs to confine itself and then become the program. The arguments
// after it are the profile, the program's path, and its whole argv.
const ReexecName = "drawbridge-confine"

// A Profile lists the resources that a program may use. Paths are absolute.
type Profile struct {
	// Required forbids starting the program with less confinement.
	Required bool
	// Read and Write are the files and directories that the row permits to read, and to write too; they must exist.
	Read, Write []string
	// Offline denies the network.
	Offline bool
	// Home is the program's own home directory, which is created if it is missing. UserHome is the person's, which it
	// cannot use.
	Home, UserHome string
	// Temp is its own directory for temporary files, beneath Home; Prepare creates it.
	Temp string
	// Dir is its working directory, which it may write, unless that is UserHome or contains it: then it starts in Home.
	Dir string
	// RowVariables are the names of the variables that the row sets; they are not changed.
	RowVariables []string
}

// ProfileFor returns the profile of a row, or nil if the row asks for none. environ is the environment that the
// server's is made from. principal is the owner of the process: each has a home of its own.
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

// A Support describes the confinement that a system supports.
type Support struct {
	// Landlock is the version of its interface; 0 means that it is missing.
	Landlock int
	// Seccomp is true if system calls can be filtered.
	Seccomp bool
	// MissingReason is why nothing is supported; empty if something is.
	MissingReason string
}

// The versions of Landlock that matter. The first covers all changes of files (Linux 6.2), the second signals and
// abstract sockets (6.12), the third sockets in the file system.
const (
	landlockFiles   = 3
	landlockSignals = 6
	landlockSockets = 9
)

// An UnsupportedError is the error for a program that must not start because the system lacks support; Why names it.
type UnsupportedError struct{ Why string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf(
		`confine = "required" cannot be met: %s (confine = "auto" starts it with the confinement that the system supports)`, e.Why)
}

// FaultCode returns PolicyBlocked: a retry is useless.
func (e *UnsupportedError) FaultCode() drawbridge.FaultCode { return drawbridge.PolicyBlocked }

// CheckSupport returns an error for what the system lacks if confinement is required, else nil.
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
		why = "this kernel, or this processor, does not support a filter of system calls that Drawbridge knows"
	case c.Home == "":
		why = noHome
	default:
		return nil
	}
	return &UnsupportedError{why}
}

// Describe returns the restrictions that the system can enforce, such as "files, sockets, signals", or why there are
// none; any reports whether there are some.
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
		files = "files (except truncation)"
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

const noHome = "no place for a home of its own: HOME is not set"

// Prepare creates the home. In it, it links each path of the row that lies in the person's home, so that programs find
// it at the usual place. It returns an error if the home cannot be created or a path of the row is missing.
func (c *Profile) Prepare() error {
	for _, p := range slices.Concat(c.Read, c.Write) {
		if _, err := os.Stat(p); err != nil {
			return fmt.Errorf("confine: %s does not exist or cannot be read: correct the path in the row", p)
		}
	}
	if err := c.makeHomeLinks(); err != nil {
		return fmt.Errorf("confine: create the home: %v", err)
	}
	return nil
}

// tempParent is the directory in a home that holds the directories for temporary files.
const tempParent = ".tmp"

// makeHomeLinks creates the links in the home. The program has written there before, and this process is not confined:
// so no link is followed.
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
		// else another path of the row contains it, or the program created it
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

// RemoveTemp removes the directory for temporary files.
func (c Profile) RemoveTemp() {
	home, err := os.OpenRoot(c.Home)
	if err != nil {
		return
	}
	defer home.Close()
	_ = home.RemoveAll(filepath.Join(tempParent, filepath.Base(c.Temp))) // what cannot be taken away does no harm
}

// Environ returns the program's environment: its home and temporary directories are its own, unless the row sets them,
// and no variable leads to the person's.
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

// isHomeVariable reports whether a variable of the base environment points to files of the person.
func isHomeVariable(name string) bool {
	return name == "HOME" || name == "TMPDIR" || strings.HasPrefix(name, "XDG_")
}

// lookupVariable returns the value of a variable; the last one counts if the name is repeated.
func lookupVariable(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if n, value, ok := strings.Cut(v, "="); ok && n == name {
			return value
		}
	}
	return ""
}
