package upstream

import "sync"

// A workerGroup owns the goroutines of one server. When the server or its pool ends, it waits until these goroutines
// have ended.
type workerGroup struct {
	pool *Pool
	work sync.WaitGroup // mu is held to add; nothing is added after ended

	mu    sync.Mutex
	ended bool
}

// start runs work in a goroutine. It returns false and does not run work if end was called or the pool is not running.
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

// end makes start refuse further work.
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

// wait waits until all work has ended. end must be called first.
func (g *workerGroup) wait() { g.work.Wait() }
