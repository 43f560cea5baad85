//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"unsafe"
)

// Restrictions are the restrictions of a profile in the form in which the kernel takes them, for a process that
// applies them to itself before it executes the program.
type Restrictions struct {
	// Ruleset is a Landlock ruleset, or nil if the kernel has no Landlock. ProcRights are the Landlock rights to another
	// /proc than the one that this process sees.
	Ruleset    *os.File
	ProcRights uint64
	// Filter contains the instructions of the system call filter, or is empty if the kernel cannot filter system calls.
	Filter []byte
	// KeptCapabilities has a bit for each capability of Linux that the program keeps. If CapabilitiesRequired is set, the
	// program must not start if the other ones cannot be dropped.
	KeptCapabilities     uint64
	CapabilitiesRequired bool
	// Dir is the directory in which the program starts.
	Dir string
}

// Restrictions returns the restrictions of the profile for a program, as far as the system supports them. program is the
// program's path, and env is its environment. The caller must close Ruleset. Restrictions returns an error if the
// profile requires more than the system supports.
func (c Profile) Restrictions(program string, env []string) (Restrictions, error) {
	support := DetectSupport()
	if err := c.CheckSupport(support); err != nil {
		return Restrictions{}, err
	}
	r := Restrictions{CapabilitiesRequired: c.Required, Dir: c.Dir}
	if c.startsInUserHome() {
		r.Dir = c.Home
	}
	for _, capability := range keptCapabilities() {
		r.KeptCapabilities |= 1 << capability
	}
	if support.Seccomp {
		code := seccompProgram(c.Offline, support.Landlock < landlockSockets)
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(&code[0])), len(code)*int(unsafe.Sizeof(code[0])))
		r.Filter = append([]byte(nil), bytes...)
	}
	if support.Landlock > 0 {
		rules, err := c.newRuleset(support.Landlock, c.grantsOf(program, searchPath(env)))
		if err != nil {
			return Restrictions{}, fmt.Errorf("confine: %w", err)
		}
		r.Ruleset, r.ProcRights = rules.File, readRights&rules.handled
	}
	return r, nil
}
