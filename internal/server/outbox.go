package server

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// errCallerGone is the error for output to a caller that has disconnected.
var errCallerGone = errors.New("the caller is gone")

// maxOutboxBytes is the size at which an outbox is full. Output that must arrive then waits until the outbox has room;
// other output is dropped.
const maxOutboxBytes = 1 << 20

// An outbox buffers output for one connection: several goroutines add bytes, and one goroutine, in run, writes them. A
// goroutine that adds bytes waits only if the bytes must arrive and the outbox is full.
type outbox struct {
	mu      sync.Mutex
	room    sync.Cond     // signals that the outbox was emptied or has failed
	wake    chan struct{} // holds one value when run has something to do
	waiting []byte
	spare   []byte // the second buffer, which takeWaiting exchanges with waiting
	// tryWrite writes bytes to a pipe without blocking, and returns false if the pipe has no room. It is nil if the
	// writer is not a pipe. writing is set while run has taken bytes that may not be written yet.
	tryWrite      func([]byte) bool
	writing       bool
	dropsOverflow bool // put no longer waits for room: a full outbox drops all bytes
	closed        bool
	dropped       int
	err           error
}

// newOutbox returns an empty outbox.
func newOutbox() *outbox {
	o := &outbox{wake: make(chan struct{}, 1)}
	o.room.L = &o.mu
	return o
}

// newOutboxTo returns an empty outbox whose run writes to out. If out is a pipe with room and no bytes are buffered,
// put writes directly to the pipe. Then the goroutine of run need not be woken.
func newOutboxTo(out io.Writer) *outbox {
	o := newOutbox()
	if f, ok := out.(*os.File); ok {
		o.tryWrite = transport.NonblockingPipeWriter(f)
	}
	return o
}

// put adds the bytes b, which are written without other bytes in between. If the outbox is full, put waits for room if
// must is set; otherwise it drops b. The error is errCallerGone if the outbox is closed or has failed.
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

// putNoWait is like put, but never waits. If must is set, it adds the bytes even to a full outbox; the caller must call
// awaitRoom later. It returns false only if the outbox is full and must is not set.
func (o *outbox) putNoWait(b []byte, must bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil || o.closed || o.add(b, must)
}

// awaitRoom waits until the outbox is not full, is closed or has failed.
func (o *outbox) awaitRoom() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waitForRoom()
}

// waitForRoom waits until the outbox is not full, is closed, has failed, or drops overflow. The caller must hold the
// lock.
func (o *outbox) waitForRoom() {
	for !o.dropsOverflow && !o.closed && o.err == nil && len(o.waiting) >= maxOutboxBytes {
		o.room.Wait()
	}
}

// add adds bytes to the buffer. If the outbox is full, add drops the bytes and returns false, unless force is set. The
// caller must hold the lock.
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

// close ends the input of the outbox: run returns when all buffered bytes are written, and put returns an error.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.room.Broadcast()
	o.wakeWriter()
}

// dropOverflow makes put stop waiting for room, also for calls that already wait. From then on, a full outbox drops all
// bytes.
func (o *outbox) dropOverflow() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropsOverflow = true
	o.room.Broadcast()
}

// fail marks the outbox as failed and drops all buffered bytes, because nothing more can be written. run then returns.
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

// takeWaiting returns the buffered bytes and empties the outbox. The bytes are valid until the next call. more is false
// if no bytes will follow: the outbox is closed and empty, or has failed.
func (o *outbox) takeWaiting() (batch []byte, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing = len(o.waiting) > 0; !o.writing {
		return nil, !o.closed && o.err == nil
	}
	batch = o.waiting
	if o.waiting = o.spare[:0]; cap(batch) > maxOutboxBytes {
		o.spare = nil // free the buffer of a large response
	} else {
		o.spare = batch
	}
	o.room.Broadcast()
	return batch, true
}

// run calls write with the buffered bytes until the outbox is closed and empty, or a write fails. It reports whether
// everything was written. If beat is not nil, run calls beat after each interval every in which nothing was written.
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
