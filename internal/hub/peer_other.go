//go:build !linux

package hub

import "net"

// checkPeer returns nil. A check is not needed, because the permissions of the socket and of its directory let only
// this user open the socket.
func checkPeer(*net.UnixConn) error { return nil }
