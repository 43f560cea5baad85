// Package confine restricts the program of a stdio server to the resources that its row, the configuration of the
// server, permits.
//
// A confined program may read the system's directories, its own files and the paths that its row permits. It may write
// to its working directory, its own home directory and the paths that its row permits to write. It cannot connect to
// the Unix sockets of other programs, and cannot access other processes. It cannot access the network if the row denies
// that. The support of the kernel is detected before a program starts. If a row requires confinement and the kernel
// does not support it, the program is not started. Only Linux is supported: Landlock restricts files and signals, and a
// system call filter restricts the rest.
//
// Confinement does not stop a malicious program that may use the network: the program can send all data that it may
// read. Names, sizes and modes of files are not hidden. The program may change modes, times and attributes of files
// that belong to its user; as root, it may also change owners.
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

// ReexecName is argv[0] of Drawbridge's own executable when it runs to confine itself and then execute the program. The
// following arguments are the profile as JSON, the program's path, and the program's whole argv.
const ReexecName = "drawbridge-confine"

// A Profile lists the resources that a program may use. Paths are absolute.
type Profile struct {
	// Required prevents the start of the program if the system does not support the confinement.
	Required bool
	// Read contains the files and directories that the row permits the program to read. Write contains the files and
	// directories that the row permits it to read and write. All of them must exist.
	Read, Write []string
	// Offline denies access to the network.
	Offline bool
	// Home is the program's own home directory, which is created if it is missing. UserHome is the user's home
	// directory, which the program cannot use.
	Home, UserHome string
	// Temp is the program's own directory for temporary files, beneath Home. Prepare creates it.
	Temp string
	// Dir is the program's working directory, which the program may write to. If Dir is UserHome or contains UserHome,
	// the program may not write to Dir and starts in Home.
	Dir string
	// RowVariables are the names of the environment variables that the row sets. The method Environ does not change
	// these variables.
	RowVariables []string
}

// ProfileFor returns the profile of a row, or nil if the row does not request confinement. environ is the environment
// from which the server's environment is made. principal is the owner of the process; each principal has a separate
// home directory for the program.
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
	// Landlock is the version of the kernel's Landlock interface; 0 means that it is missing.
	Landlock int
	// Seccomp is true if system calls can be filtered.
	Seccomp bool
	// MissingReason is why the system does not support any confinement; empty if it supports some.
	MissingReason string
}

// The lowest Landlock versions that restrict certain resources. landlockFiles restricts all changes of files (Linux
// 6.2). landlockSignals also restricts signals and abstract sockets (Linux 6.12). landlockSockets also restricts
// sockets in the file system.
const (
	landlockFiles   = 3
	landlockSignals = 6
	landlockSockets = 9
)

// An UnsupportedError reports that a program must not start because the system does not support a required confinement.
// Why names what is missing.
type UnsupportedError struct{ Why string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf(
		`confine = "required" cannot be met: %s (confine = "auto" starts it with the confinement that the system supports)`, e.Why)
}

// FaultCode returns PolicyBlocked, since a retry is useless.
func (e *UnsupportedError) FaultCode() drawbridge.FaultCode { return drawbridge.PolicyBlocked }

// CheckSupport returns an error if the profile requires confinement and a system with the support r cannot enforce it.
// The error names the missing part. Otherwise CheckSupport returns nil.
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

// Describe returns the restrictions of the profile that a system with the support r can enforce, such as "files,
// sockets, signals". If the system can enforce none, Describe returns the reason, and any is false.
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

// Prepare creates the program's home directory and the links in it. The row may permit paths in the user's home
// directory. For each of them, Prepare creates a link at the same relative path in the program's home directory, where
// programs look for it. It returns an error if the home directory cannot be created or a permitted path is missing.
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

// tempParent is the directory in the program's home that contains the directories for temporary files.
const tempParent = ".tmp"

// makeHomeLinks creates the program's home directory with its links, and a directory for temporary files. It does not
// follow links in the home directory. The program may have created such links at an earlier start, and this process is
// not confined.
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
		// Otherwise another path of the row contains p, or the program created a file in its place.
		if home.MkdirAll(filepath.Dir(rel), 0o700) == nil {
			_ = home.Symlink(p, rel) // existing files are kept
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
	_ = home.RemoveAll(filepath.Join(tempParent, filepath.Base(c.Temp))) // a remaining directory is harmless
}

// Environ returns the environment env, changed for a confined program. HOME and TMPDIR are set to the program's own
// directories, and the XDG variables are removed. Variables that the row sets are not changed.
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

// isHomeVariable reports whether a variable of the base environment points to files of the user.
func isHomeVariable(name string) bool {
	return name == "HOME" || name == "TMPDIR" || strings.HasPrefix(name, "XDG_")
}

// lookupVariable returns the value of a variable. If the name is repeated, the last value counts.
func lookupVariable(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if n, value, ok := strings.Cut(v, "="); ok && n == name {
			return value
		}
	}
	return ""
}
