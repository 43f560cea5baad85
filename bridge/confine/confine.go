// Package confine keeps the program of a stdio server to what its row names.
//
// A confined program reads the system's own directories, the program itself and what its row lets it read; it writes its
// working directory, a home of its own and what its row lets it write; it reaches no socket of the machine's other programs
// and no other process, and where the row says so no network. What of this the kernel offers is found out before anything is
// started: a row that requires it starts with no less, or not at all. Only Linux has it: Landlock for files and signals, a
// filter of system calls for the rest.
//
// It is no jail for a program that means harm and has the network: what it may read it may send. Names, sizes and modes of
// files are not hidden, and the modes of files that belong to its user it may change.
package confine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
)

// Marker is argv[0] of our executable where it is run to confine itself and then become the program. Behind it come the
// cage, the program's path, and its whole argv.
const Marker = "drawbridge-confine"

// A Cage is what a program is kept to. Paths are absolute.
type Cage struct {
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
	// Own are the names of the variables that the row sets: they stay as they are.
	Own []string
}

// Of gives the cage of a row, and nil for one that wants none. Environ is the environment that the server gets its own from,
// principal whose process it is: no two share a home.
func Of(row config.Server, environ []string, principal string) *Cage {
	if row.Confine.Level == "" || row.Command == "" {
		return nil
	}
	c := &Cage{
		Required: row.Confine.Level == config.ConfineRequired, Offline: row.Confine.Offline,
		Read: row.Confine.Read, Write: row.Confine.Write, Dir: row.Cwd, UserHome: lookup(environ, "HOME"),
	}
	for _, p := range row.Env {
		c.Own = append(c.Own, p.Name)
	}
	cache := lookup(environ, "XDG_CACHE_HOME")
	if !filepath.IsAbs(cache) && filepath.IsAbs(c.UserHome) {
		cache = filepath.Join(c.UserHome, ".cache")
	}
	if filepath.IsAbs(cache) {
		sum := sha256.Sum256([]byte(row.Hash + "\x00" + principal))
		c.Home = filepath.Join(cache, "drawbridge", "homes", string(row.ID)+"-"+hex.EncodeToString(sum[:6]))
	}
	return c
}

// A Reach is what a system offers to confine programs with.
type Reach struct {
	// Landlock is the version of its interface, 0 where there is none.
	Landlock int
	// Calls says that system calls can be filtered.
	Calls bool
	// Why says what is missing altogether; empty where something is there.
	Why string
}

// The versions of Landlock that matter: with the first all ways to change a file are covered (Linux 6.2), with the second
// signals and abstract sockets are (6.12), with the third sockets in the file system.
const (
	landlockFiles   = 3
	landlockSignals = 6
	landlockSockets = 9
)

// ErrUnmet is wrapped by the error for a program that must not start with what the system offers.
var ErrUnmet = errors.New(`confine = "required" cannot be kept`)

// Unmet says what the system lacks for a cage that is required; nil where it lacks nothing, or nothing is required.
func (c Cage) Unmet(r Reach) error {
	var why string
	switch {
	case !c.Required:
		return nil
	case r.Why != "":
		why = r.Why
	case r.Landlock < landlockFiles:
		why = fmt.Sprintf("this kernel has Landlock %d, and %d is needed (Linux 6.2 or newer)", r.Landlock, landlockFiles)
	case !r.Calls:
		why = "this kernel, or this processor, has no filter of system calls that is known here"
	case c.Home == "":
		why = "there is no place for a home of its own: HOME is not set"
	default:
		return nil
	}
	return fmt.Errorf(`%w: %s (confine = "auto" starts it with what there is)`, ErrUnmet, why)
}

// Reached says in words what a cage keeps a program from with what the system offers: "files, sockets, signals"; "" is
// nothing.
func (c Cage) Reached(r Reach) string {
	var words []string
	add := func(word string, ok bool) {
		if ok {
			words = append(words, word)
		}
	}
	if r.Why != "" || c.Home == "" {
		return ""
	}
	add("files", r.Landlock >= landlockFiles)
	add("files (but for their length)", r.Landlock > 0 && r.Landlock < landlockFiles)
	add("sockets", r.Calls || r.Landlock >= landlockSockets)
	add("signals", r.Landlock >= landlockSignals)
	add("network", c.Offline && r.Calls)
	return strings.Join(words, ", ")
}

// Prepare makes the home, with a way in it to each thing that the row names within the person's home, so that programs find
// it where they look. The error is for a home that cannot be made, and for what the row names and is not there.
func (c *Cage) Prepare() error {
	for _, p := range slices.Concat(c.Read, c.Write) {
		if _, err := os.Stat(p); err != nil {
			return fmt.Errorf("confine: %s is not there, or cannot be looked at", p)
		}
	}
	if err := os.MkdirAll(filepath.Join(c.Home, ".tmp"), 0o700); err != nil {
		return fmt.Errorf("confine: make a home: %w", err)
	}
	for _, p := range slices.Concat(c.Read, c.Write) {
		rel, err := filepath.Rel(c.UserHome, p)
		if err != nil || rel == "." || !filepath.IsLocal(rel) {
			continue
		}
		link := filepath.Join(c.Home, rel)
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			continue // one that is named within another is there already
		}
		_ = os.Symlink(p, link) // what is there stays
	}
	temp, err := os.MkdirTemp(filepath.Join(c.Home, ".tmp"), "")
	if err != nil {
		return fmt.Errorf("confine: make a temporary directory: %w", err)
	}
	c.Temp = temp
	return nil
}

// Environ gives the program's environment: its home and its directory for what is passing are its own, unless the row says
// where they are, and nothing leads to the person's.
func (c Cage) Environ(env []string) []string {
	moved := []string{"HOME=" + c.Home, "TMPDIR=" + c.Temp}
	out := make([]string, 0, len(env)+len(moved))
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(c.Own, name) || !leadsHome(name) {
			out = append(out, v)
		}
	}
	for _, v := range moved {
		if name, _, _ := strings.Cut(v, "="); !slices.Contains(c.Own, name) {
			out = append(out, v)
		}
	}
	return out
}

// leadsHome says whether a variable of the base environment says where the person's own files are.
func leadsHome(name string) bool {
	return name == "HOME" || name == "TMPDIR" || strings.HasPrefix(name, "XDG_")
}

// lookup finds a variable; of a name that is there twice the last counts.
func lookup(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if n, value, ok := strings.Cut(v, "="); ok && n == name {
			return value
		}
	}
	return ""
}
