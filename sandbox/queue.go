package sandbox

import (
	"context"
	"slices"
	"sync"
)

// A slotQueue lets so many scripts run at the same time. A free slot goes to the waiting owner with the fewest running
// scripts, so that many scripts of one owner do not keep others from running.
type slotQueue struct {
	mu          sync.Mutex
	free, slots int
	// running are the numbers of running scripts by owner.
	running map[string]int
	waiting []*slotWaiter
	// released is signalled when a slot becomes free.
	released *sync.Cond
}

// A slotWaiter waits for a slot. ready is closed when it has one.
type slotWaiter struct {
	owner string
	ready chan struct{}
}

func newSlotQueue(slots int) *slotQueue {
	q := &slotQueue{free: slots, slots: slots, running: map[string]int{}}
	q.released = sync.NewCond(&q.mu)
	return q
}

// acquire takes a slot for a script of the owner. It waits while all are taken.
func (q *slotQueue) acquire(ctx context.Context, owner string) error {
	q.mu.Lock()
	if q.free > 0 {
		q.take(owner)
		q.mu.Unlock()
		return nil
	}
	w := &slotWaiter{owner, make(chan struct{})}
	q.waiting = append(q.waiting, w)
	q.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	at := slices.Index(q.waiting, w)
	if at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	q.mu.Unlock()
	if at < 0 { // it got a slot meanwhile
		q.release(owner)
	}
	return context.Cause(ctx)
}

// take takes a free slot. The caller holds the lock.
func (q *slotQueue) take(owner string) {
	q.free--
	q.running[owner]++
}

// release ends the use of a slot.
func (q *slotQueue) release(owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.released.Broadcast()
	q.free++
	if q.running[owner]--; q.running[owner] == 0 {
		delete(q.running, owner)
	}
	if len(q.waiting) == 0 {
		return
	}
	next := 0
	for i, w := range q.waiting {
		if q.running[w.owner] < q.running[q.waiting[next].owner] {
			next = i
		}
	}
	w := q.waiting[next]
	q.waiting = slices.Delete(q.waiting, next, next+1)
	q.take(w.owner)
	close(w.ready)
}

// wait waits until no slot is taken.
func (q *slotQueue) wait() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.free < q.slots {
		q.released.Wait()
	}
}
