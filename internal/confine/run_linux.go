package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// errorFD is the descriptor on which a program that could not be confined writes the error. On success it is closed
// without output.
const errorFD = 3

// DetectSupport returns the confinement that this system supports.
func DetectSupport() Support {
	version, err := ll.LandlockGetABIVersion()
	if err != nil || version < 1 {
		return Support{MissingReason: "this kernel does not have Landlock, or it is not enabled (see /sys/kernel/security/lsm)"}
	}
	return Support{Landlock: version, Seccomp: canFilterCalls()}
}

// RunConfined confines this process and turns it into a program. It returns only on failure, with a status, after
// writing the error to errorFD. args are the profile, the program's path, and its whole argv.
func RunConfined(args []string) int {
	unix.CloseOnExec(errorFD)
	said := os.NewFile(errorFD, "said")
	_, _ = said.WriteString(confineAndExec(args).Error())
	return 126
}

// confineAndExec returns why the program was not started.
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
	runtime.LockOSThread() // what is given up is given up by the thread that becomes the program
	if reach.Landlock > 0 {
		if err := c.restrictFiles(reach.Landlock, c.grantsOf(program, searchPath(env))); err != nil {
			return fmt.Errorf("confine: %w", err)
		}
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

// restrictFiles drops access to all files but those granted, and to whatever else the kernel's Landlock covers.
func (c Profile) restrictFiles(version int, g pathGrants) error {
	presets := []landlock.Config{
		landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8,
		landlock.V9, landlock.V10, landlock.V11,
	}
	preset := presets[min(version, len(presets))-1]
	if !c.Offline {
		preset.HandledAccessNet = 0
	}
	rules := []landlock.Rule{landlock.RWFiles(devicePaths()...).IgnoreIfMissing()}
	add := func(paths []string, dirs, files func(...string) landlock.FSRule) {
		d, f := splitDirsAndFiles(paths)
		if len(d) > 0 {
			rules = append(rules, dirs(d...))
		}
		if len(f) > 0 {
			rules = append(rules, files(f...))
		}
	}
	add(append(g.system, g.read...), landlock.RODirs, landlock.ROFiles)
	add(g.write, func(p ...string) landlock.FSRule {
		if version < 2 {
			return landlock.RWDirs(p...)
		}
		return landlock.RWDirs(p...).WithRefer()
	}, landlock.RWFiles)
	return preset.Restrict(rules...)
}
