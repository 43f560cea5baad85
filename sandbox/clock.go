package sandbox

import (
	"encoding/binary"
	"time"
)

// A guestClock is the clock of a run. It has its readings recorded, and a repeated run gets the same ones before it reads
// the present time.
type guestClock struct {
	// start is the start of the run, from which the monotonic clock counts.
	start time.Time
	// repeated are the recorded readings that were not repeated yet.
	repeated []byte
	// record reports that readings are recorded; readings are those since the last call of take, and recorded is their
	// size in the whole run.
	record   bool
	readings []byte
	recorded int
	// last is the last reading: of the monotonic clock, and of the wall clock.
	last [2]int64
}

// repeats reports whether the next reading is a recorded one.
func (c *guestClock) repeats() bool { return len(c.repeated) > 0 }

// peek returns the present time, in nanoseconds since 1970 or since the start of the run.
func (c *guestClock) peek(wall bool) time.Duration {
	if wall {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Since(c.start)
}

// now returns the time that the script reads, in nanoseconds since 1970 or since the start of the run.
func (c *guestClock) now(wall bool) time.Duration {
	kind := 0
	if wall {
		kind = 1
	}
	if c.repeats() {
		step, n := binary.Varint(c.repeated)
		if n > 0 {
			c.repeated = c.repeated[n:]
			c.last[kind] += step
			if !c.repeats() { // the monotonic clock goes on where it was
				c.start = time.Now().Add(-time.Duration(c.last[0]))
			}
			return time.Duration(c.last[kind])
		}
		c.repeated = nil
	}
	t := int64(c.peek(wall))
	if c.record && c.recorded <= maxClock {
		size := len(c.readings)
		c.readings = binary.AppendVarint(c.readings, t-c.last[kind])
		c.recorded += len(c.readings) - size
	}
	c.last[kind] = t
	return time.Duration(t)
}

// take returns the readings since the last call. ok is false if there are none to send. Empty readings mean that there
// were too many.
func (c *guestClock) take() (readings []byte, ok bool) {
	switch {
	case !c.record:
		return nil, false
	case c.recorded > maxClock:
		c.record = false
		return nil, true
	}
	readings, c.readings = c.readings, nil
	return readings, len(readings) > 0
}
