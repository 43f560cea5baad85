package upstream

import "sync"

// A workerGroup owns the goroutines of one server. The ends of the server and of the pool wait for them.
type workerGroup struct {
	pool *Pool
	work sync.WaitGroup // grows under mu, and not after ended

	mu    sync.Mutex
	ended bool
}

// start runs work in a goroutine. It returns false, and runs nothing, after end and unless the pool runs.
func (g *workerGroup) start(work func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return false
	}
	g.work.Add(1)
	ok := g.pool.startWorker(func() {
		defer g.work.Done()
		work()
	})
	if !ok {
		g.work.Done()
	}
	return ok
}

// end refuses further work.
func (g *workerGroup) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}

// hasEnded reports whether end was called.
func (g *workerGroup) hasEnded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended
}

// wait waits until all work has ended. Call end first.
func (g *workerGroup) wait() { g.work.Wait() }
