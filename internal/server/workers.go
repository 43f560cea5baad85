package server

import "sync"

// maxIdleWorkers is how many goroutines stay for work to come. A client that calls one after the other needs two.
const maxIdleWorkers = 4

// A WorkerPool carries out work. The zero value works.
type WorkerPool struct {
	// mu guards those who wait for work, and whether there will be none.
	mu     sync.Mutex
	idle   []chan func()
	closed bool

	workers sync.WaitGroup
}

// Go has f done in a goroutine, by one that waits for work where there is one.
func (c *WorkerPool) Go(f func()) {
	c.mu.Lock()
	if last := len(c.idle) - 1; last >= 0 {
		to := c.idle[last]
		c.idle = c.idle[:last]
		c.mu.Unlock()
		to <- f // which has room for it
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

// waitForWork has a goroutine wait for work; false where enough do.
func (c *WorkerPool) waitForWork(more chan func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.idle) >= maxIdleWorkers {
		return false
	}
	c.idle = append(c.idle, more)
	return true
}

// Close waits until all work is done, and ends those who wait for more. There is none after it.
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
