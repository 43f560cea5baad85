package transport

import (
	"net"
	"slices"
	"testing"
	"time"
)

// TestSomeConnectionsExpire has an origin with a connection that was idle for too long and one that was not.
func TestSomeConnectionsExpire(t *testing.T) {
	tr := NewHTTPTransport("http://127.0.0.1/", true)
	defer tr.CloseIdleConnections()
	now := time.Now()
	at := connKey{address: "127.0.0.1:80"}
	near, far := net.Pipe()
	defer far.Close()
	old, fresh := &keptConn{conn: near, idleSince: now.Add(-2 * idleConnTimeout)}, &keptConn{conn: near, idleSince: now}
	tr.idle[at], tr.expiry = []*keptConn{old, fresh}, time.NewTimer(time.Hour)
	if expired := tr.takeExpired(now); !slices.Equal(expired, []*keptConn{old}) || !slices.Equal(tr.idle[at], []*keptConn{fresh}) {
		t.Errorf("expired are %v, left is %v", expired, tr.idle)
	}
}
