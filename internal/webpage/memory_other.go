//go:build !linux

package webpage

// limitMemory does nothing: this system has no such limit.
func limitMemory(uint64) {}
