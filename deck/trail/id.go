package trail

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// ids makes the IDs of calls, ULIDs: each comes after the one before it, whatever the clock does. Package ulid makes them too, by way
// of readers and of a text that is written out byte by byte: a call that comes alone has to fetch all that code first.
type ids struct {
	mu sync.Mutex
	// high and low are the last ID: 48 bits of milliseconds, 80 that are random.
	high, low uint64
	// random is for the next ones, as far as it is left.
	random [512]byte
	left   int
}

// next makes an ID for what happens at a time.
func (d *ids) next(at time.Time) string {
	d.mu.Lock()
	high, low := uint64(at.UnixMilli())<<16|d.draw()>>48, d.draw()
	if high>>16 <= d.high>>16 { // another one of this millisecond, or the clock was put back
		var carry uint64
		low, carry = bits.Add64(d.low, 1+low>>32, 0)
		high = d.high + carry
	}
	d.high, d.low = high, low
	d.mu.Unlock()
	var text [ulid.EncodedSize]byte
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = ulid.Encoding[low%32]
		low, high = low>>5|high<<59, high>>5
	}
	return string(text[:])
}

// draw gives 64 random bits. The lock is held.
func (d *ids) draw() uint64 {
	if d.left == 0 {
		_, _ = rand.Read(d.random[:]) // it does not fail
		d.left = len(d.random)
	}
	d.left -= 8
	return binary.LittleEndian.Uint64(d.random[d.left:])
}
