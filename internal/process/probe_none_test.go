//go:build unix && !linux

package process_test

// playProbe is for programs that are confined, which only Linux does.
func playProbe() {}
