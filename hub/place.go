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

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/gofrs/flock"
)

// maxSocket is the longest path that a Unix socket may have everywhere (104 bytes with the zero on macOS).
const maxSocket = 100

// A place is where the processes of one user find the hub of one store: a file that is locked for as long as there is one,
// and says where it listens.
type place struct{ file string }

// A sign is what the hub's file says.
type sign struct {
	PID    int    `json:"pid"`
	Socket string `json:"socket"`
}

// placeOf gives the place for a store. It says false for a store that no other process can have.
func placeOf(store string, lookup func(string) (string, bool)) (place, bool, error) {
	switch {
	case store == gateway.Memory:
		return place{}, false, nil
	case strings.Contains(store, "://"):
		near, err := gateway.StoreLocation("", config.Settings{}, lookup)
		if err != nil {
			return place{}, false, err
		}
		sum := sha256.Sum256([]byte(store))
		return place{filepath.Join(filepath.Dir(near), "hub-"+hex.EncodeToString(sum[:8]))}, true, nil
	}
	abs, err := filepath.Abs(store)
	if err != nil {
		return place{}, false, fmt.Errorf("find the hub of %s: %w", store, err)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(dir, filepath.Base(abs))
	}
	return place{abs + ".hub"}, true, nil
}

// read gives what the file says; false where it says nothing.
func (p place) read() (sign, bool) {
	data, err := os.ReadFile(p.file)
	var s sign
	return s, err == nil && json.Unmarshal(data, &s) == nil && s.Socket != ""
}

// A lease is the right to be the hub.
type lease struct {
	place    place
	lock     *flock.Flock
	listener *net.UnixListener
	// made is a directory that was made for the socket alone; empty for none.
	made string
}

// errTaken is for a place that has its hub.
var errTaken = errors.New("another process is the hub")

// take becomes the hub and listens. The error is errTaken where another process is.
func (p place) take() (*lease, error) {
	if err := os.MkdirAll(filepath.Dir(p.file), 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(p.file, flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, err
	}
	if !ok {
		_ = lock.Close()
		return nil, errTaken
	}
	l := &lease{place: p, lock: lock}
	if err := l.listen(); err != nil {
		l.end()
		return nil, err
	}
	return l, nil
}

func (l *lease) listen() error {
	if old, ok := l.place.read(); ok {
		_ = os.Remove(old.Socket) // its hub is dead: we have the lock
	}
	path := l.place.file + ".sock"
	if len(path) > maxSocket {
		dir, err := os.MkdirTemp("", "drawbridge-")
		if err != nil {
			return err
		}
		l.made, path = dir, filepath.Join(dir, "hub.sock")
	}
	_ = os.Remove(path)
	listener, err := listenUnix(path)
	if err != nil {
		return err
	}
	l.listener = listener
	text, err := json.Marshal(sign{PID: os.Getpid(), Socket: path})
	if err != nil {
		return err
	}
	return os.WriteFile(l.place.file, text, 0o600)
}

// deaf ends the listening: whoever comes now becomes the next hub, once the lease has ended.
func (l *lease) deaf() {
	if l.listener != nil {
		_ = l.listener.Close() // which takes the socket away too
	}
}

// end gives the right back.
func (l *lease) end() {
	l.deaf()
	if l.made != "" {
		_ = os.Remove(l.made)
	}
	_ = os.Truncate(l.place.file, 0)
	_ = l.lock.Close()
}

// dial connects to the hub, if there is one that answers.
func (p place) dial() (*net.UnixConn, error) {
	s, ok := p.read()
	if !ok {
		return nil, errNone
	}
	if err := ours(s.Socket); err != nil {
		return nil, err
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: s.Socket, Net: "unix"})
	if err != nil {
		return nil, errNone
	}
	return conn, nil
}

var errNone = errors.New("no hub runs")
