package sandbox

import (
	"crypto/rand"
	"encoding/binary"
	"io"
	"time"
)

// The error numbers of WASI preview 1 that the shim returns.
const (
	wasiSuccess = 0
	wasiBadf    = 8
	wasiFault   = 21
	wasiInval   = 28
	wasiNosys   = 52
	wasiSpipe   = 70
)

// The sizes of records of WASI preview 1.
const (
	iovecSize        = 8
	fdstatSize       = 24
	filestatSize     = 64
	subscriptionSize = 48
	eventSize        = 32
	characterDevice  = 2
)

// floodFactor is how many times its limit a script may write until it is ended.
const floodFactor = 16

// A world is what one run of the interpreter can reach: a clock, random numbers, two output buffers, and the host.
type world struct {
	limits Limits
	clock  *guestClock
	// random makes the random numbers of a run that is recorded; nil for those of the system.
	random  io.Reader
	output  [2][]byte
	written int
	// truncated reports that output was dropped, flooded that the run was ended because of it.
	truncated, flooded bool
	exited             bool
	// ended is closed when the run must end; nil in a process that is killed then.
	ended <-chan struct{}
	// exchange sends a request to the host and returns its answer.
	exchange func(request []byte) ([]byte, error)
	reply    []byte
	lost     bool // the program is gone, or does not keep to the protocol
}

// guestMemory is the memory of the interpreter. Its methods return false for addresses outside.
type guestMemory []byte

func (m guestMemory) span(at, size uint32) ([]byte, bool) {
	end := uint64(at) + uint64(size)
	if end > uint64(len(m)) {
		return nil, false
	}
	return m[at:end:end], true
}

func (m guestMemory) put32(at, value uint32) uint32 {
	b, ok := m.span(at, 4)
	if !ok {
		return wasiFault
	}
	binary.LittleEndian.PutUint32(b, value)
	return wasiSuccess
}

func (m guestMemory) put64(at uint32, value uint64) uint32 {
	b, ok := m.span(at, 8)
	if !ok {
		return wasiFault
	}
	binary.LittleEndian.PutUint64(b, value)
	return wasiSuccess
}

// putDevice writes a record of a character device: zeros, with the kind of the file in the byte at kindAt.
func (m guestMemory) putDevice(at, size uint32, kindAt int) uint32 {
	b, ok := m.span(at, size)
	if !ok {
		return wasiFault
	}
	clear(b)
	b[kindAt] = characterDevice
	return wasiSuccess
}

// callWASI carries out a function of WASI preview 1. Every function of files and sockets answers that the descriptor
// does not exist; only the three standard descriptors do.
func (w *world) callWASI(name string, m guestMemory, args []uint64) uint32 {
	arg := func(i int) uint32 { return uint32(args[i]) }
	switch name {
	case "args_sizes_get", "environ_sizes_get":
		if e := m.put32(arg(0), 0); e != wasiSuccess {
			return e
		}
		return m.put32(arg(1), 0)
	case "args_get", "environ_get", "sched_yield":
		return wasiSuccess
	case "clock_res_get":
		return m.put64(arg(1), 1000)
	case "clock_time_get":
		return w.readClock(m, arg(0), arg(2))
	case "random_get":
		b, ok := m.span(arg(0), arg(1))
		if !ok {
			return wasiFault
		}
		if w.random == nil {
			_, _ = rand.Read(b) // never fails
		} else {
			_, _ = w.random.Read(b) // never fails
		}
		return wasiSuccess
	case "fd_write":
		return w.write(m, arg(0), arg(1), arg(2), arg(3))
	case "poll_oneoff":
		return w.sleep(m, arg(0), arg(1), arg(2), arg(3))
	case "proc_exit":
		w.exited = true
		return wasiSuccess
	}
	return w.callStandardFile(name, m, args)
}

// callStandardFile carries out a function of the standard descriptors: an empty input and two outputs.
func (w *world) callStandardFile(name string, m guestMemory, args []uint64) uint32 {
	if len(args) == 0 || uint32(args[0]) > 2 {
		return wasiBadf
	}
	switch name {
	case "fd_read":
		if uint32(args[0]) != 0 {
			return wasiBadf
		}
		return m.put32(uint32(args[3]), 0)
	case "fd_fdstat_get":
		return m.putDevice(uint32(args[1]), fdstatSize, 0)
	case "fd_filestat_get":
		return m.putDevice(uint32(args[1]), filestatSize, 16)
	case "fd_close":
		return wasiSuccess
	case "fd_seek", "fd_tell":
		return wasiSpipe
	}
	return wasiBadf
}

// readClock writes the time of a clock: 0 is the wall clock, 1 to 3 count from the start of the run.
func (w *world) readClock(m guestMemory, id, at uint32) uint32 {
	if id > 3 {
		return wasiInval
	}
	return m.put64(at, uint64(w.clock.now(id == 0)))
}

// write keeps output up to the limit and drops the rest.
func (w *world) write(m guestMemory, fd, vectors, count, writtenAt uint32) uint32 {
	if fd != 1 && fd != 2 {
		return wasiBadf
	}
	if count > 1024 {
		return wasiInval
	}
	total := uint32(0)
	for i := range count {
		vector, ok := m.span(vectors+iovecSize*i, iovecSize)
		if !ok {
			return wasiFault
		}
		text, ok := m.span(binary.LittleEndian.Uint32(vector), binary.LittleEndian.Uint32(vector[4:]))
		if !ok {
			return wasiFault
		}
		total += uint32(len(text))
		w.written += len(text)
		kept := &w.output[fd-1]
		if room := max(w.limits.Output-len(*kept), 0); len(text) > room {
			text, w.truncated = text[:room], true
		}
		*kept = append(*kept, text...)
	}
	if w.written > floodFactor*w.limits.Output {
		w.flooded = true
	}
	return m.put32(writtenAt, total)
}

// sleep waits for the first of the clocks that the script waits for, or for the end of the run.
func (w *world) sleep(m guestMemory, subscriptions, events, count, countAt uint32) uint32 {
	if count == 0 || count > 16 {
		return wasiInval
	}
	wait, userData := time.Duration(-1), []byte(nil)
	for i := range count {
		s, ok := m.span(subscriptions+subscriptionSize*i, subscriptionSize)
		if !ok {
			return wasiFault
		}
		if s[8] != 0 { // not a clock
			continue
		}
		d := time.Duration(binary.LittleEndian.Uint64(s[24:]))
		if binary.LittleEndian.Uint16(s[40:])&1 != 0 { // an absolute time
			d -= w.clock.peek(binary.LittleEndian.Uint32(s[16:]) == 0)
		}
		if d = max(d, 0); wait < 0 || d < wait {
			wait, userData = d, s[:8]
		}
	}
	event, ok := m.span(events, eventSize)
	switch {
	case wait < 0:
		return wasiNosys
	case !ok:
		return wasiFault
	}
	if !w.clock.repeats() {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.ended:
		}
	}
	id := [8]byte(userData) // the event may overlap the subscription
	clear(event)
	copy(event, id[:])
	return m.put32(countAt, 1)
}
