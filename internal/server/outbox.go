package server

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// errCallerGone is the error of what was meant for a caller who is not there any more.
var errCallerGone = errors.New("the caller is gone")

// maxOutboxBytes is how many bytes may wait for a slow reader before more of them wait in turn, or are dropped.
const maxOutboxBytes = 1 << 20

// An outbox holds what one goroutine writes and others have to say. Whoever says something waits for nobody's reading,
// unless it must be heard and the box is full.
type outbox struct {
	mu      sync.Mutex
	room    sync.Cond     // the box was emptied, or has failed
	wake    chan struct{} // holds one token: there is something to do
	waiting []byte
	spare   []byte // the other buffer
	// tryWrite writes what there is room for at once; nil where nothing does. writing says that run has taken
	// something, which may not be out yet.
	tryWrite      func([]byte) bool
	writing       bool
	dropsOverflow bool // nobody waits for room any more
	closed        bool
	dropped       int
	err           error
}

// newOutbox makes an empty box.
func newOutbox() *outbox {
	o := &outbox{wake: make(chan struct{}, 1)}
	o.room.L = &o.mu
	return o
}

// newOutboxTo makes an empty box that Run is to write to out. What is put into it while nothing waits goes out at
// once, where out is a pipe with room for it: nobody needs to be woken for that.
func newOutboxTo(out io.Writer) *outbox {
	o := newOutbox()
	if f, ok := out.(*os.File); ok {
		o.tryWrite = transport.NonblockingPipeWriter(f)
	}
	return o
}

// put adds bytes that go out together. What must arrive waits for room in a full box; what need not is dropped. The
// error is errCallerGone where nobody takes anything out any more.
func (o *outbox) put(b []byte, must bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if must {
		o.waitForRoom()
	}
	if o.err != nil || o.closed {
		return errCallerGone
	}
	if o.tryWrite == nil || o.writing || len(o.waiting) > 0 || !o.tryWrite(b) {
		o.add(b, false)
	}
	return nil
}

// putNoWait is put for those who must not wait: what must arrive goes in whether there is room or not, and whoever
// said it waits afterwards, by await. It says false for what was dropped.
func (o *outbox) putNoWait(b []byte, must bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil || o.closed || o.add(b, must)
}

// awaitRoom waits for room.
func (o *outbox) awaitRoom() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waitForRoom()
}

// waitForRoom waits until the box is not full, or nobody waits any more. The lock is held.
func (o *outbox) waitForRoom() {
	for !o.dropsOverflow && !o.closed && o.err == nil && len(o.waiting) >= maxOutboxBytes {
		o.room.Wait()
	}
}

// add puts bytes in, into a full box only by force. The lock is held.
func (o *outbox) add(b []byte, force bool) bool {
	if len(o.waiting) >= maxOutboxBytes && !force {
		o.dropped++
		return false
	}
	o.waiting = append(o.waiting, b...)
	o.wakeWriter()
	return true
}

func (o *outbox) wakeWriter() {
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
	o.wakeWriter()
}

// dropOverflow has nobody wait for room any more: what does not fit is dropped.
func (o *outbox) dropOverflow() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropsOverflow = true
	o.room.Broadcast()
}

// fail says that nothing more goes out.
func (o *outbox) fail() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err, o.waiting, o.spare = errCallerGone, nil, nil
	o.room.Broadcast()
	o.wakeWriter()
}

func (o *outbox) failed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil
}

// takeWaiting empties the box. The bytes are good until the next take. It says false behind the last.
func (o *outbox) takeWaiting() (batch []byte, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing = len(o.waiting) > 0; !o.writing {
		return nil, !o.closed && o.err == nil
	}
	batch = o.waiting
	if o.waiting = o.spare[:0]; cap(batch) > maxOutboxBytes {
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
		batch, more := o.takeWaiting()
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
