package server

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// errCallerGone is the error for output to a caller that is gone.
var errCallerGone = errors.New("the caller is gone")

// maxOutboxBytes is how many bytes may wait for a slow reader. Beyond it, further output waits or is dropped.
const maxOutboxBytes = 1 << 20

// An outbox buffers output that one goroutine writes and others add. Adding does not wait for the reader, unless the
// output must arrive and the box is full.
type outbox struct {
	mu      sync.Mutex
	room    sync.Cond     // signals that the box was emptied or has failed
	wake    chan struct{} // holds one token when there is work
	waiting []byte
	spare   []byte // the other buffer
	// tryWrite writes as much as fits at once; nil if the writer cannot do that. writing reports that run has taken
	// bytes that may not be written yet.
	tryWrite      func([]byte) bool
	writing       bool
	dropsOverflow bool // waiting for room has ended
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

// newOutboxTo returns an empty outbox that run is to write to out. If out is a pipe with room and nothing waits, put
// writes at once, so that no goroutine has to be woken.
func newOutboxTo(out io.Writer) *outbox {
	o := newOutbox()
	if f, ok := out.(*os.File); ok {
		o.tryWrite = transport.NonblockingPipeWriter(f)
	}
	return o
}

// put adds bytes that are written together. With must it waits for room in a full box; otherwise a full box drops them.
// The error is errCallerGone if nothing is written any more.
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

// putNoWait is put without waiting: with must it adds the bytes even to a full box, and the caller calls await later.
// It reports false if the bytes were dropped.
func (o *outbox) putNoWait(b []byte, must bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil || o.closed || o.add(b, must)
}

// awaitRoom waits until the box has room.
func (o *outbox) awaitRoom() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waitForRoom()
}

// waitForRoom waits until the box has room or waiting has ended. The caller holds the lock.
func (o *outbox) waitForRoom() {
	for !o.dropsOverflow && !o.closed && o.err == nil && len(o.waiting) >= maxOutboxBytes {
		o.room.Wait()
	}
}

// add adds bytes; to a full box only if forced. The caller holds the lock.
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

// close ends the input: run returns when the box is empty.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.room.Broadcast()
	o.wakeWriter()
}

// dropOverflow ends all waits for room: bytes that do not fit are dropped.
func (o *outbox) dropOverflow() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropsOverflow = true
	o.room.Broadcast()
}

// fail records that nothing more can be written.
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

// takeWaiting empties the box. The bytes are valid until the next call. It reports false after the last bytes.
func (o *outbox) takeWaiting() (batch []byte, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing = len(o.waiting) > 0; !o.writing {
		return nil, !o.closed && o.err == nil
	}
	batch = o.waiting
	if o.waiting = o.spare[:0]; cap(batch) > maxOutboxBytes {
		o.spare = nil // do not keep the buffer of a large response
	} else {
		o.spare = batch
	}
	o.room.Broadcast()
	return batch, true
}

// run writes the content until the box is closed and empty, or a write fails. It reports whether everything was
// written. If beat is not nil, run calls it after each interval without a write.
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
