package server

import "sync"

// maxIdleWorkers is the maximum number of idle goroutines of a pool. A client that makes one call at a time needs two
// goroutines.
const maxIdleWorkers = 4

// A WorkerPool runs functions in goroutines and uses an idle goroutine again for the next function. The stack of such a
// goroutine need not grow again. The zero value is ready to use.
type WorkerPool struct {
	// mu guards idle and closed.
	mu     sync.Mutex
	idle   []chan func()
	closed bool

	workers sync.WaitGroup
}

// Go runs f in the goroutine of an idle worker if there is one, else in a new one.
func (c *WorkerPool) Go(f func()) {
	c.mu.Lock()
	if last := len(c.idle) - 1; last >= 0 {
		to := c.idle[last]
		c.idle = c.idle[:last]
		c.mu.Unlock()
		to <- f // the channel has room for one function
		return
	}
	c.mu.Unlock()
	c.workers.Go(func() {
		more := make(chan func(), 1)
		for f := f; f != nil; f = <-more {
			f()
			if !c.waitForWork(more) {
				return
			}
		}
	})
}

// waitForWork adds a worker to the idle workers; more is the channel from which the worker receives its next function.
// It returns false if enough workers are idle or the pool is closed; then the worker must end.
func (c *WorkerPool) waitForWork(more chan func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.idle) >= maxIdleWorkers {
		return false
	}
	c.idle = append(c.idle, more)
	return true
}

// Close ends the idle workers and waits until all functions have returned. Go must not be called after Close.
func (c *WorkerPool) Close() {
	c.mu.Lock()
	c.closed = true
	for _, more := range c.idle {
		close(more)
	}
	c.idle = nil
	c.mu.Unlock()
	c.workers.Wait()
}
