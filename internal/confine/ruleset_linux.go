package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// The Landlock rights to a directory with its content. fileRights are the rights among them that a file may have.
const (
	readRights  = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	writeRights = readRights | ll.AccessFSWriteFile | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeChar |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeBlock |
		ll.AccessFSMakeSym | ll.AccessFSTruncate
	fileRights = ll.AccessFSExecute | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSReadFile
)

// A ruleset is a Landlock ruleset. handled are the rights that it takes away from all files without a rule.
type ruleset struct {
	*os.File
	handled uint64
}

// newRuleset returns a ruleset that denies access to all files except the granted paths. It also denies access to all
// other resources that the kernel's Landlock version can restrict. Access to the network is denied only if the profile
// is offline.
func (c Profile) newRuleset(version int, g pathGrants) (*ruleset, error) {
	presets := []landlock.Config{
		landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8,
		landlock.V9, landlock.V10, landlock.V11,
	}
	preset := presets[min(version, len(presets))-1]
	attr := ll.RulesetAttr{HandledAccessFS: uint64(preset.HandledAccessFS), Scoped: uint64(preset.Scoped)}
	if c.Offline {
		attr.HandledAccessNet = uint64(preset.HandledAccessNet)
	}
	fd, err := ll.LandlockCreateRuleset(&attr, 0) // closed on exec
	if err != nil {
		return nil, fmt.Errorf("create the ruleset: %w", err)
	}
	r := &ruleset{os.NewFile(uintptr(fd), "ruleset"), attr.HandledAccessFS}
	if err := r.addGrants(g); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// addGrants adds a rule for each granted path.
func (r *ruleset) addGrants(g pathGrants) error {
	add := func(paths []string, rights uint64) error {
		dirs, files := splitDirsAndFiles(paths)
		for _, dir := range dirs {
			if err := r.addRule(dir, rights); err != nil {
				return err
			}
		}
		for _, file := range files {
			if err := r.addRule(file, rights&fileRights); err != nil {
				return err
			}
		}
		return nil
	}
	for _, device := range devicePaths() {
		if err := r.addRule(device, writeRights&fileRights); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := add(append(g.system, g.read...), readRights); err != nil {
		return err
	}
	return add(g.write, writeRights|ll.AccessFSRefer) // to move and link files between directories
}

// addRule grants those of the rights to a path that the ruleset would take away.
func (r *ruleset) addRule(path string, rights uint64) error {
	fd, err := syscall.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "restrict files: open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	err = ll.LandlockAddPathBeneathRule(int(r.Fd()), &ll.PathBeneathAttr{ParentFd: fd, AllowedAccess: rights & r.handled}, 0)
	if err != nil {
		return &fs.PathError{Op: "restrict files: add", Path: path, Err: err}
	}
	return nil
}
