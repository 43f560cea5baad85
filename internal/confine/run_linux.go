package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// errorFD is the file descriptor to which RunConfined writes the error if the program could not be confined. If the
// program was executed, the descriptor is closed without output.
const errorFD = 3

// DetectSupport returns the confinement that this system supports.
func DetectSupport() Support {
	version, err := ll.LandlockGetABIVersion()
	if err != nil || version < 1 {
		return Support{MissingReason: "this kernel does not have Landlock, or it is not enabled (see /sys/kernel/security/lsm)"}
	}
	return Support{Landlock: version, Seccomp: canFilterCalls()}
}

// RunConfined confines this process and replaces it by a program. args are the profile as JSON, the program's path, and
// the program's whole argv. RunConfined returns only on failure: it writes the error to errorFD and returns the exit
// status.
func RunConfined(args []string) int {
	unix.CloseOnExec(errorFD)
	said := os.NewFile(errorFD, "said")
	_, _ = said.WriteString(confineAndExec(args).Error())
	return 126
}

// confineAndExec confines this process and executes the program. It returns only on failure, with the error.
func confineAndExec(args []string) error {
	if len(args) < 3 {
		return errors.New("confine: the program is missing from the arguments")
	}
	var c Profile
	if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
		return fmt.Errorf("confine: read the profile: %w", err)
	}
	program, argv, env := args[1], args[2:], os.Environ()
	reach := DetectSupport()
	if err := c.CheckSupport(reach); err != nil {
		return err
	}
	if c.startsInUserHome() {
		if err := os.Chdir(c.Home); err != nil {
			return fmt.Errorf("confine: %w", err)
		}
	}
	runtime.LockOSThread() // restrictions apply to this thread, which becomes the program
	if err := c.restrictFiles(reach.Landlock, program, env); err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	if err := dropCapabilities(); err != nil && c.Required {
		return fmt.Errorf("confine: %w", err)
	}
	if reach.Seccomp {
		if err := installFilter(c.Offline, reach.Landlock < landlockSockets); err != nil {
			return fmt.Errorf("confine: filter system calls: %w", err)
		}
	}
	return fmt.Errorf("confine: %w", syscall.Exec(program, argv, env))
}

// restrictFiles denies this thread access to all files except those that the program may use.
func (c Profile) restrictFiles(version int, program string, env []string) error {
	if version == 0 {
		return nil
	}
	rules, err := c.newRuleset(version, c.grantsOf(program, searchPath(env)))
	if err != nil {
		return err
	}
	defer rules.Close()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := ll.LandlockRestrictSelf(int(rules.Fd()), 0); err != nil {
		return fmt.Errorf("restrict files: %w", err)
	}
	return nil
}
