//go:build unix

package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// listenUnix listens on a Unix socket that only this user may open.
func listenUnix(path string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// checkSocketOwner returns an error if another user created the socket. It returns errNoHub if the socket does not
// exist.
func checkSocketOwner(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errNoHub
	}
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Getuid() {
		return fmt.Errorf("the socket %s belongs to another user", path)
	}
	return nil
}

// sendFile sends one byte over the connection, and with it the open file f.
func sendFile(c *net.UnixConn, f *os.File) error {
	_, _, err := c.WriteMsgUnix([]byte{'\n'}, syscall.UnixRights(fileDescriptor(f)), nil)
	return err
}

// receiveFile receives a file that sendFile sent.
func receiveFile(c *net.UnixConn) (*os.File, error) {
	oob := make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:n])
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := syscall.ParseUnixRights(&m)
		if err == nil && len(fds) == 1 {
			syscall.CloseOnExec(fds[0])
			return os.NewFile(uintptr(fds[0]), "listener"), nil
		}
	}
	return nil, errors.New("no file came with the message")
}
