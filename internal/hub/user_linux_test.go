package hub

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// TestAZ3AnotherUserIsNotLetIn has another user of the machine come to the hub's socket: where they can open it at
// all, they are refused before they are heard. The hub's own user is let in.
func TestAZ3AnotherUserIsNotLetIn(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "state")
	if err := errors.Join(os.Chmod(filepath.Dir(base), 0o755), os.Chmod(base, 0o755),
		os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "hub.sock")
	if len(path) > maxSocketPath {
		t.Skip("the directory's name is too long for a socket")
	}
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has %v, %v", info.Mode(), err)
	}
	// comes has somebody come, and gives what the hub says of them.
	comes := func(dial func() (net.Conn, error)) error {
		conn, err := dial()
		if err != nil {
			return err
		}
		defer conn.Close()
		peer, err := l.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		return checkPeer(peer)
	}
	dial := func() (net.Conn, error) { return net.Dial("unix", path) }
	if err := comes(dial); err != nil {
		t.Errorf("its own user: %v", err)
	}
	if os.Getuid() != 0 {
		t.Skip("it takes root to become another user")
	}
	other := func() (conn net.Conn, err error) {
		const nobody = 65534
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
				err = errno
				return
			}
			conn, err = dial()
		}()
		<-done
		return conn, err
	}
	if err := comes(other); !errors.Is(err, syscall.EACCES) {
		t.Errorf("another user opens it: %v", err)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(path, 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := comes(other); err == nil || errors.Is(err, syscall.EACCES) {
		t.Errorf("another user who can open it: %v", err)
	}
}
