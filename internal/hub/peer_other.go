//go:build !linux

package hub

import "net"

// checkPeer accepts every process that could open the socket: its mode and that of its directory admit this user only.
func checkPeer(*net.UnixConn) error { return nil }
