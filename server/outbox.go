package server

import (
	"errors"
	"sync"
	"time"
)

// errGone is the error of what was meant for a caller who is not there any more.
var errGone = errors.New("the caller is gone")

// maxWaiting is how many bytes may wait for a slow reader before more of them wait in turn, or are dropped.
const maxWaiting = 1 << 20

// An outbox holds what one goroutine writes and others have to say. Whoever says something waits for nobody's reading,
// unless it must be heard and the box is full.
type outbox struct {
	mu      sync.Mutex
	room    sync.Cond     // the box was emptied, or has failed
	wake    chan struct{} // holds one token: there is something to do
	waiting []byte
	spare   []byte // the other buffer
	hurried bool   // nobody waits for room any more
	closed  bool
	dropped int
	err     error
}

func newOutbox() *outbox {
	o := &outbox{wake: make(chan struct{}, 1)}
	o.room.L = &o.mu
	return o
}

// put adds bytes that go out together. What must arrive waits for room in a full box; what need not is dropped. The
// error is errGone where nobody takes anything out any more.
func (o *outbox) put(b []byte, must bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if must {
		o.waitForRoom()
	}
	if o.err != nil || o.closed {
		return errGone
	}
	o.add(b, false)
	return nil
}

// push is put for those who must not wait: what must arrive goes in whether there is room or not, and whoever said it
// waits afterwards, by await. It says false for what was dropped.
func (o *outbox) push(b []byte, must bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil || o.closed || o.add(b, must)
}

// await waits for room.
func (o *outbox) await() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waitForRoom()
}

// waitForRoom waits until the box is not full, or nobody waits any more. The lock is held.
func (o *outbox) waitForRoom() {
	for !o.hurried && !o.closed && o.err == nil && len(o.waiting) >= maxWaiting {
		o.room.Wait()
	}
}

// add puts bytes in, into a full box only by force. The lock is held.
func (o *outbox) add(b []byte, force bool) bool {
	if len(o.waiting) >= maxWaiting && !force {
		o.dropped++
		return false
	}
	o.waiting = append(o.waiting, b...)
	o.ring()
	return true
}

func (o *outbox) ring() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// close says that nothing more comes: run ends when the box is empty.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.room.Broadcast()
	o.ring()
}

// hurry has nobody wait for room any more: what does not fit is dropped.
func (o *outbox) hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hurried = true
	o.room.Broadcast()
}

// fail says that nothing more goes out.
func (o *outbox) fail() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err, o.waiting, o.spare = errGone, nil, nil
	o.room.Broadcast()
	o.ring()
}

func (o *outbox) failed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil
}

// take empties the box. The bytes are good until the next take. It says false behind the last.
func (o *outbox) take() (batch []byte, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return nil, !o.closed && o.err == nil
	}
	batch = o.waiting
	if o.waiting = o.spare[:0]; cap(batch) > maxWaiting {
		o.spare = nil // a large answer's buffer is not kept
	} else {
		o.spare = batch
	}
	o.room.Broadcast()
	return batch, true
}

// run writes what is put in until the box is closed and empty, or writing goes wrong. It says whether all was written.
// Where beat is not nil it is called in between, each time that nothing was written for so long.
func (o *outbox) run(write func([]byte) error, every time.Duration, beat func() error) (whole bool) {
	var tick <-chan time.Time
	if beat != nil {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		tick = ticker.C
	}
	quiet := true
	for {
		batch, more := o.take()
		if !more {
			return !o.failed()
		}
		if len(batch) > 0 {
			quiet = false
			if write(batch) != nil {
				o.fail()
				return false
			}
			continue
		}
		select {
		case <-o.wake:
		case <-tick:
			if quiet && beat() != nil {
				o.fail()
				return false
			}
			quiet = true
		}
	}
}
