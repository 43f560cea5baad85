//go:build !unix

package hub

import (
	"errors"
	"net"
	"os"
)

// listenUnix listens on a Unix socket. The directory must be accessible only to this user.
func listenUnix(path string) (*net.UnixListener, error) {
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}

// checkSocketOwner returns nil, because this system cannot report the owner of a socket. The permissions of the
// directory decide who can create a socket in it.
func checkSocketOwner(string) error { return nil }

var errNoFilePassing = errors.New("this system passes no open files on: serve over HTTP before anything else serves")

func sendFile(*net.UnixConn, *os.File) error      { return errNoFilePassing }
func receiveFile(*net.UnixConn) (*os.File, error) { return nil, errNoFilePassing }
