package hub

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checkPeer returns an error if the process at the other end of the connection belongs to another user.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) {
		cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if asked != nil {
		return asked
	}
	if int(cred.Uid) != os.Getuid() {
		return fmt.Errorf("process %d is user %d's", cred.Pid, cred.Uid)
	}
	return nil
}
