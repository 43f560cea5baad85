package server_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/drawbridge-mcp/drawbridge/internal/server"
)

// TestWorkNeverWaits has more work than goroutines that stay: all of it goes on at once, and none of them is left.
func TestWorkNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c server.WorkerPool
		for range 3 { // the second and third time some are there already
			var begun atomic.Int32
			end := make(chan struct{})
			for range 20 {
				c.Go(func() {
					begun.Add(1)
					<-end
				})
			}
			synctest.Wait()
			if n := begun.Load(); n != 20 {
				t.Errorf("%d of 20 began", n)
			}
			close(end)
			synctest.Wait()
		}
		c.Close()
	})
}

// TestWorkIsDoneOnce has work come while other work ends, and the end while some goes on.
func TestWorkIsDoneOnce(t *testing.T) {
	var c server.WorkerPool
	var done atomic.Int32
	const callers, each = 8, 500
	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() {
			for range each {
				answered := make(chan struct{})
				c.Go(func() {
					done.Add(1)
					close(answered)
				})
				<-answered
			}
		})
	}
	calling.Wait()
	c.Close()
	if n := done.Load(); n != callers*each {
		t.Errorf("%d were done of %d", n, callers*each)
	}
}
