//go:build bench && !linux

package bench

import "errors"

// processorTime is known on Linux only.
func processorTime(int) (µs float64, ok bool) { return 0, false }

// countSyscalls counts on Linux only: it does the work.
func countSyscalls(_ []int, work func() error) (n float64, by string, err error) {
	return 0, "", work()
}

func tracepoint() error { return errors.ErrUnsupported }
