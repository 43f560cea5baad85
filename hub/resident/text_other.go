//go:build !linux

package resident

// EaseOff is advice that only Linux takes.
func EaseOff() {}
