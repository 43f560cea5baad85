package mcp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// DefaultAnswersInFlight is the default size of an AnswerBudget in bytes.
const DefaultAnswersInFlight = 256 << 20

// AnswersInFlightSetting is the name of the setting with the size of the budget, for messages.
const AnswersInFlightSetting = "[mcp] answers_in_flight"

const (
	// uncountedAnswer is how many bytes of each answer are not counted.
	uncountedAnswer = 64 << 10
	// answerChunk is the size of the parts in which an answer of unknown length is kept while it is read.
	answerChunk = 256 << 10
	// maxFree is how many parts without an answer are kept for the next ones: 16 MiB.
	maxFree = 64
	// collectEvery is the pause between two garbage collections for an answer that waits. It doubles up to
	// collectSeldom.
	collectEvery, collectSeldom = 20 * time.Millisecond, time.Second
	// trimAfter is how long after the last large answer memory is returned to the operating system. trimFrom is how
	// many bytes must have been allocated for that.
	trimAfter, trimFrom = 2 * time.Second, 16 << 20
	// maxTrims is how often memory is returned after a burst of answers whose memory is still in use.
	maxTrims = 5
)

// A NoRoomError reports that an answer was dropped because the AnswerBudget had no room for it. The request was sent
// and may have taken effect. errors.Is reports it as ErrTooLong too, since the rest of the message is skipped.
type NoRoomError struct {
	// Limit is the size of the budget in bytes.
	Limit int64
	// Alone is set if the answer alone needs more than the whole budget.
	Alone bool
}

// Error returns a text that names the setting.
func (e *NoRoomError) Error() string {
	if e.Alone {
		return fmt.Sprintf("the answer alone needs more memory than %s allows (%d bytes)", AnswersInFlightSetting,
			e.Limit)
	}
	return fmt.Sprintf("no room for the answer: the answers in flight take all that %s allows (%d bytes)",
		AnswersInFlightSetting, e.Limit)
}

// FaultCode returns RateLimited, or ServerError for an answer that a retry does not make smaller.
func (e *NoRoomError) FaultCode() drawbridge.FaultCode {
	if e.Alone {
		return drawbridge.ServerError
	}
	return drawbridge.RateLimited
}

// Is reports whether target is ErrTooLong.
func (e *NoRoomError) Is(target error) bool { return target == ErrTooLong }

// IsNoRoom reports whether an error wraps a *NoRoomError.
func IsNoRoom(err error) bool {
	_, ok := errors.AsType[*NoRoomError](err)
	return ok
}

// An AnswerBudget bounds the memory of the large answers in flight: those that are read from servers, and those that
// were read and are still in use. The memory of an answer counts until the garbage collector has freed it, so the bound
// holds for the process and not only for the code that counts. The first 64 KiB of each answer do not count.
//
// An answer without room waits. The answer that has been read for the longest time may use the whole budget, and half
// of the budget is kept for it. So answers that hold a part and wait for more do not block each other for ever. If the
// longest one still waits, and all others that hold a part wait too, the one that began last is dropped.
//
// A nil *AnswerBudget bounds nothing.
type AnswerBudget struct {
	limit int64

	mu   sync.Mutex
	held int64 // all memory that was allocated and not freed yet
	// reading are the answers that hold memory and are not complete; the first one began first.
	reading []*AnswerBuffer
	free    [][]byte      // chunks that no answer uses
	waiting int           // the number of answers that wait
	changed chan struct{} // closed and replaced when memory was freed or an answer ended

	collecting bool
	burst      int64 // the bytes that were allocated since memory was returned to the operating system
	lastUse    time.Time
	trim       *time.Timer
	trims      int
	closed     bool
}

// NewAnswerBudget returns a budget of limit bytes; 0 means DefaultAnswersInFlight.
func NewAnswerBudget(limit int64) *AnswerBudget {
	if limit <= 0 {
		limit = DefaultAnswersInFlight
	}
	return &AnswerBudget{limit: limit, changed: make(chan struct{})}
}

// Close drops the memory that no answer uses. It must be called when no more answers are read.
func (b *AnswerBudget) Close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.free = true, nil
	if b.trim != nil && b.trim.Stop() {
		b.trim = nil
	}
}

// Held returns how many bytes of large answers are in memory.
func (b *AnswerBudget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// Waiting returns how many answers wait for room.
func (b *AnswerBudget) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting
}

// allocate returns n bytes for the answer a. If there is no room it waits until ctx ends, for at most patience if that
// is positive.
func (b *AnswerBudget) allocate(ctx context.Context, a *AnswerBuffer, n int, patience time.Duration) ([]byte, error) {
	if data, err := b.tryAllocate(a, n); data != nil || err != nil {
		return data, err
	}
	var late <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	defer b.setWaiting(a, false)
	for pause := collectEvery; ; {
		b.setWaiting(a, true)
		again := time.NewTimer(pause)
		b.mu.Lock()
		changed := b.changed
		b.mu.Unlock()
		if data, err := b.tryAllocate(a, n); data != nil || err != nil {
			again.Stop()
			return data, err
		}
		select {
		case <-changed:
		case <-again.C:
			b.collect()
			b.dropLastIfStuck(a, n)
			pause = min(2*pause, collectSeldom)
		case <-ctx.Done():
			again.Stop()
			return nil, &NoRoomError{Limit: b.limit}
		case <-late:
			again.Stop()
			return nil, &NoRoomError{Limit: b.limit}
		}
		again.Stop()
	}
}

// tryAllocate returns n bytes if there is room. It returns nil without an error if there is none now.
func (b *AnswerBudget) tryAllocate(a *AnswerBuffer, n int) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.evicted {
		return nil, &NoRoomError{Limit: b.limit}
	}
	if a.held+int64(n) > b.limit {
		return nil, &NoRoomError{Limit: b.limit, Alone: true}
	}
	if len(b.free) > 0 && n == answerChunk && b.held-b.freeBytes()+int64(n) <= b.limitFor(a) {
		last := len(b.free) - 1
		data := b.free[last]
		b.free[last], b.free = nil, b.free[:last]
		b.noteUse(a, n)
		return data, nil
	}
	if b.held+int64(n) > b.limitFor(a) {
		if n != answerChunk {
			b.free = nil // the next collection frees them
		}
		return nil, nil
	}
	b.held += int64(n)
	b.burst += int64(n)
	b.noteUse(a, n)
	data := make([]byte, n)
	runtime.AddCleanup(&data[0], b.release, int64(n))
	return data, nil
}

func (b *AnswerBudget) freeBytes() int64 { return int64(len(b.free)) * answerChunk }

// limitFor returns how much of the budget may be in use after an allocation for the answer a. The caller holds mu.
func (b *AnswerBudget) limitFor(a *AnswerBuffer) int64 {
	if len(b.reading) == 0 || b.reading[0] == a {
		return b.limit
	}
	return b.limit - max(0, b.limit/2-b.reading[0].held)
}

// noteUse records that the answer a holds n bytes more. The caller holds mu.
func (b *AnswerBudget) noteUse(a *AnswerBuffer, n int) {
	if a.held == 0 {
		b.reading = append(b.reading, a)
	}
	a.held += int64(n)
	b.lastUse, b.trims = time.Now(), 0
	if b.trim == nil && !b.closed {
		b.trim = time.AfterFunc(trimAfter, b.returnMemory)
	}
}

// release records that the garbage collector has freed n bytes.
func (b *AnswerBudget) release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= n
	b.wake()
}

// wake lets the answers that wait try again. The caller holds mu.
func (b *AnswerBudget) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// end records that the answer a is complete or dropped. Its chunks can be used again.
func (b *AnswerBudget) end(a *AnswerBuffer, chunks [][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.held == 0 {
		return
	}
	a.held, a.evicted = 0, false
	b.reading = slices.DeleteFunc(b.reading, func(other *AnswerBuffer) bool { return other == a })
	b.free = append(b.free, chunks[:min(len(chunks), maxFree-min(len(b.free), maxFree))]...)
	b.wake()
}

func (b *AnswerBudget) setWaiting(a *AnswerBuffer, waiting bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case waiting && !a.waiting:
		b.waiting++
	case !waiting && a.waiting:
		b.waiting--
	}
	a.waiting = waiting
}

// collect runs the garbage collector, unless another goroutine does.
func (b *AnswerBudget) collect() {
	b.mu.Lock()
	busy := b.collecting
	b.collecting = true
	b.mu.Unlock()
	if busy {
		return
	}
	runtime.GC()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.collecting = false
}

// dropLastIfStuck drops the answer that began last if a began first and no answer can continue: all of them wait, and
// there is no room for n bytes even when no complete answer is in use any more.
func (b *AnswerBudget) dropLastIfStuck(a *AnswerBuffer, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := int64(n)
	for _, other := range b.reading {
		sum += other.held
	}
	if sum <= b.limit {
		return
	}
	if len(b.reading) < 2 || b.reading[0] != a ||
		slices.ContainsFunc(b.reading, func(other *AnswerBuffer) bool { return !other.waiting || other.evicted }) {
		return
	}
	b.reading[len(b.reading)-1].evicted = true
	b.wake()
}

// returnMemory returns memory to the operating system some time after the last large answer. Otherwise the runtime
// would keep it for minutes.
func (b *AnswerBudget) returnMemory() {
	b.mu.Lock()
	if left := trimAfter - time.Since(b.lastUse); !b.closed && (left > 0 || len(b.reading) > 0) {
		b.trim.Reset(max(left, trimAfter/2))
		b.mu.Unlock()
		return
	}
	worth := b.burst >= trimFrom
	b.free = nil
	b.mu.Unlock()
	if worth {
		debug.FreeOSMemory()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trims++; worth && !b.closed && b.held >= trimFrom && b.trims < maxTrims { // a client may still read the answers
		b.trim.Reset(trimAfter << b.trims)
		return
	}
	b.trim, b.burst = nil, 0
}
