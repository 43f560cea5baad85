package server

import (
	"iter"
	"sync"
	"sync/atomic"
)

// The states of a coroutine. It is idle without a function. It is running while a goroutine drives it. It is notified
// if it was woken while it was running, so that it must not stay parked. It is parked while its function waits.
const (
	coroutineIdle int32 = iota
	coroutineRunning
	coroutineNotified
	coroutineParked
)

// A coroutine runs functions that can park: the goroutine that drives the coroutine then continues with other work, and
// any goroutine can later drive the rest of the function. The switch does not involve the scheduler. So a call can run
// in the goroutine that has read the request, and continue in the goroutine that has read the response.
type coroutine struct {
	pool *coroutinePool
	// next continues the function until it parks or returns. stop ends the coroutine. yield parks the function.
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	run   func()
	state atomic.Int32
	// returned is set when run has returned. Only the goroutine that drives the coroutine uses it.
	returned bool
}

// drive continues the function until it parks or returns. The state must be coroutineRunning.
func (c *coroutine) drive() {
	for {
		c.next()
		if c.returned {
			c.pool.putBack(c)
			return
		}
		if c.state.CompareAndSwap(coroutineRunning, coroutineParked) {
			return
		}
		c.state.Store(coroutineRunning)
	}
}

// wake makes a parked function continue. It returns true if the caller must drive the coroutine. Otherwise the function
// does not park, or the goroutine that drives the coroutine continues it.
func (c *coroutine) wake() bool {
	for {
		switch c.state.Load() {
		case coroutineParked:
			if c.state.CompareAndSwap(coroutineParked, coroutineRunning) {
				return true
			}
		case coroutineRunning:
			if c.state.CompareAndSwap(coroutineRunning, coroutineNotified) {
				return false
			}
		default:
			return false
		}
	}
}

// maxIdleCoroutines is the maximum number of idle coroutines of a pool.
const maxIdleCoroutines = 2

// A coroutinePool holds the coroutines of a connection. A parked function that is woken continues in a goroutine of
// workers. The zero value, with workers, is ready to use.
type coroutinePool struct {
	workers *WorkerPool
	// unfinished counts the functions that have not returned.
	unfinished sync.WaitGroup

	mu   sync.Mutex
	idle []*coroutine
}

// start returns a coroutine that runs f when the caller calls drive.
func (p *coroutinePool) start(f func()) *coroutine {
	p.unfinished.Add(1)
	c := p.takeIdle()
	if c == nil {
		c = p.newCoroutine()
	}
	c.run, c.returned = f, false
	c.state.Store(coroutineRunning)
	return c
}

func (p *coroutinePool) newCoroutine() *coroutine {
	c := &coroutine{pool: p}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		for more := true; more; more = yield(struct{}{}) {
			c.run()
			c.run, c.returned = nil, true
		}
	})
	return c
}

func (p *coroutinePool) takeIdle() *coroutine {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	c := p.idle[last]
	p.idle = p.idle[:last]
	return c
}

// putBack makes a coroutine whose function has returned available again.
func (p *coroutinePool) putBack(c *coroutine) {
	defer p.unfinished.Done()
	c.state.Store(coroutineIdle)
	p.mu.Lock()
	keep := len(p.idle) < maxIdleCoroutines
	if keep {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if !keep {
		c.stop()
	}
}

// close waits until all functions have returned, and ends the idle coroutines. start must not be called after close.
func (p *coroutinePool) close() {
	p.unfinished.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		c.stop()
	}
	p.idle = nil
}
