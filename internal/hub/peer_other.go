//go:build !linux

package hub

import "net"

// checkPeer lets everybody in who could open the socket: its rights, and those of its directory, are this user's alone.
func checkPeer(*net.UnixConn) error { return nil }
