package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/privatefile"
)

// maxSocketPath is a length of the path of a Unix socket that every system accepts. The limit of macOS is 104 bytes,
// with the terminating zero.
const maxSocketPath = 100

// A hubFile is the file with which the processes of one user find the hub of one store. The hub locks the file and
// writes the address of its socket to it.
type hubFile struct{ path string }

// A hubAddress is the content of the hub file.
type hubAddress struct {
	PID    int    `json:"pid"`
	Socket string `json:"socket"`
}

// hubFileFor returns the hub file of a store. It returns false for a store in memory, which other processes cannot
// open.
func hubFileFor(store string, lookup func(string) (string, bool)) (hubFile, bool, error) {
	switch {
	case store == gateway.MemoryStore:
		return hubFile{}, false, nil
	case strings.Contains(store, "://"):
		near, err := gateway.StoreLocation("", config.Settings{}, lookup)
		if err != nil {
			return hubFile{}, false, err
		}
		sum := sha256.Sum256([]byte(store))
		return hubFile{filepath.Join(filepath.Dir(near), "hub-"+hex.EncodeToString(sum[:8]))}, true, nil
	}
	abs, err := filepath.Abs(store)
	if err != nil {
		return hubFile{}, false, fmt.Errorf("find the hub of %s: %w", store, err)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(dir, filepath.Base(abs))
	}
	return hubFile{abs + ".hub"}, true, nil
}

// readAddress returns the address in the hub file. It returns false if the file does not contain an address.
func (p hubFile) readAddress() (hubAddress, bool) {
	if insecure, _ := errors.AsType[*privatefile.InsecureError](privatefile.Check(p.path, false)); insecure != nil &&
		!insecure.Repairable {
		return hubAddress{}, false // acquire reports the error
	}
	data, err := os.ReadFile(p.path)
	var s hubAddress
	return s, err == nil && json.Unmarshal(data, &s) == nil && s.Socket != ""
}

// A hubLease is the right of this process to be the hub. It consists of the lock on the hub file and the listener on
// the socket.
type hubLease struct {
	file     hubFile
	lock     *flock.Flock
	listener *net.UnixListener
	// socketDir is a temporary directory that contains only the socket; empty if there is none.
	socketDir string
}

// errTaken reports that another process holds the lock.
var errTaken = errors.New("another process is the hub")

// acquire locks the file and listens on the socket. The error is errTaken if another process is the hub.
func (p hubFile) acquire() (*hubLease, error) {
	if err := os.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return nil, err
	}
	if _, err := privatefile.Protect(p.path, false); err != nil {
		return nil, err
	}
	lock := flock.New(p.path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR|privatefile.NoFollow))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, err
	}
	if !ok {
		_ = lock.Close()
		return nil, errTaken
	}
	l := &hubLease{file: p, lock: lock}
	if err := l.listen(); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

func (l *hubLease) listen() error {
	if old, ok := l.file.readAddress(); ok {
		_ = os.Remove(old.Socket) // its hub is dead: this process holds the lock
	}
	path := l.file.path + ".sock"
	if len(path) > maxSocketPath {
		dir, err := os.MkdirTemp("", "drawbridge-")
		if err != nil {
			return err
		}
		l.socketDir, path = dir, filepath.Join(dir, "hub.sock")
	}
	_ = os.Remove(path)
	listener, err := listenUnix(path)
	if err != nil {
		return err
	}
	l.listener = listener
	text, err := json.Marshal(hubAddress{PID: os.Getpid(), Socket: path})
	if err != nil {
		return err
	}
	return l.writeFile(text)
}

// stopListening closes and removes the socket. This process still holds the lock, so another process can become the hub
// only after release.
func (l *hubLease) stopListening() {
	if l.listener != nil {
		_ = l.listener.Close() // this also removes the socket
	}
}

// release ends the lease: it closes the socket, empties the file and unlocks it.
func (l *hubLease) release() {
	l.stopListening()
	if l.socketDir != "" {
		_ = os.Remove(l.socketDir)
	}
	_ = l.writeFile(nil)
	_ = l.lock.Close()
}

// writeFile replaces the content of the locked hub file. If another user has put a link in place of the file, writeFile
// does not follow the link.
func (l *hubLease) writeFile(text []byte) error {
	f, err := os.OpenFile(l.file.path, os.O_WRONLY|os.O_TRUNC|privatefile.NoFollow, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// dialHub connects to the socket of the hub. The error is errNoHub if no hub accepts the connection.
func (p hubFile) dialHub() (*net.UnixConn, error) {
	s, ok := p.readAddress()
	if !ok {
		return nil, errNoHub
	}
	if err := checkSocketOwner(s.Socket); err != nil {
		return nil, err
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: s.Socket, Net: "unix"})
	if err != nil {
		return nil, errNoHub
	}
	return conn, nil
}

var errNoHub = errors.New("no hub runs")
