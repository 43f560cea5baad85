//go:build !linux

package cli

// parentProgram returns "": the parent is unknown on this system.
func parentProgram() string { return "" }
