package sandbox

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepareCommand has the kernel kill the worker when the thread that starts it ends.
func prepareCommand(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// programPath returns the path of this program, also when its file was replaced.
func programPath() (string, error) { return "/proc/self/exe", nil }

// closeInherited closes the descriptors that the program passed on by mistake.
func closeInherited() error {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range fds {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd < 3 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd) // it is inherited: those of this process are closed by exec
		}
	}
	return nil
}
