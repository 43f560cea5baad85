//go:build !linux

package webpage

// limitMemory does nothing: this system has no such bound.
func limitMemory(uint64) {}
