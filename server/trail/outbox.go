package trail

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/atonce"
)

// ErrGone is the error of what was meant for a caller who is not there any more.
var ErrGone = errors.New("the caller is gone")

// maxWaiting is how many bytes may wait for a slow reader before more of them wait in turn, or are dropped.
const maxWaiting = 1 << 20

// An Outbox holds what one goroutine writes and others have to say. Whoever says something waits for nobody's reading,
// unless it must be heard and the box is full.
type Outbox struct {
	mu      sync.Mutex
	room    sync.Cond     // the box was emptied, or has failed
	wake    chan struct{} // holds one token: there is something to do
	waiting []byte
	spare   []byte // the other buffer
	// try writes what there is room for at once; nil where nothing does. writing says that run has taken something, which may not be
	// out yet.
	try     func([]byte) bool
	writing bool
	hurried bool // nobody waits for room any more
	closed  bool
	dropped int
	err     error
}

// NewOutbox makes an empty box.
func NewOutbox() *Outbox {
	o := &Outbox{wake: make(chan struct{}, 1)}
	o.room.L = &o.mu
	return o
}

// NewOutboxTo makes an empty box that Run is to write to out. What is put into it while nothing waits goes out at once, where out is a
// pipe with room for it: nobody needs to be woken for that.
func NewOutboxTo(out io.Writer) *Outbox {
	o := NewOutbox()
	if f, ok := out.(*os.File); ok {
		o.try = atonce.Writer(f)
	}
	return o
}

// Put adds bytes that go out together. What must arrive waits for room in a full box; what need not is dropped. The
// error is ErrGone where nobody takes anything out any more.
func (o *Outbox) Put(b []byte, must bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if must {
		o.waitForRoom()
	}
	if o.err != nil || o.closed {
		return ErrGone
	}
	if o.try == nil || o.writing || len(o.waiting) > 0 || !o.try(b) {
		o.add(b, false)
	}
	return nil
}

// push is put for those who must not wait: what must arrive goes in whether there is room or not, and whoever said it
// waits afterwards, by await. It says false for what was dropped.
func (o *Outbox) push(b []byte, must bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil || o.closed || o.add(b, must)
}

// await waits for room.
func (o *Outbox) await() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waitForRoom()
}

// waitForRoom waits until the box is not full, or nobody waits any more. The lock is held.
func (o *Outbox) waitForRoom() {
	for !o.hurried && !o.closed && o.err == nil && len(o.waiting) >= maxWaiting {
		o.room.Wait()
	}
}

// add puts bytes in, into a full box only by force. The lock is held.
func (o *Outbox) add(b []byte, force bool) bool {
	if len(o.waiting) >= maxWaiting && !force {
		o.dropped++
		return false
	}
	o.waiting = append(o.waiting, b...)
	o.ring()
	return true
}

func (o *Outbox) ring() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Close says that nothing more comes: run ends when the box is empty.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.room.Broadcast()
	o.ring()
}

// Hurry has nobody wait for room any more: what does not fit is dropped.
func (o *Outbox) Hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hurried = true
	o.room.Broadcast()
}

// Fail says that nothing more goes out.
func (o *Outbox) Fail() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err, o.waiting, o.spare = ErrGone, nil, nil
	o.room.Broadcast()
	o.ring()
}

func (o *Outbox) failed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil
}

// take empties the box. The bytes are good until the next take. It says false behind the last.
func (o *Outbox) take() (batch []byte, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing = len(o.waiting) > 0; !o.writing {
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

// Run writes what is put in until the box is closed and empty, or writing goes wrong. It says whether all was written.
// Where beat is not nil it is called in between, each time that nothing was written for so long.
func (o *Outbox) Run(write func([]byte) error, every time.Duration, beat func() error) (whole bool) {
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
				o.Fail()
				return false
			}
			continue
		}
		select {
		case <-o.wake:
		case <-tick:
			if quiet && beat() != nil {
				o.Fail()
				return false
			}
			quiet = true
		}
	}
}
