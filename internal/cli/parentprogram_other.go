//go:build !linux

package cli

// parentProgram is not known here.
func parentProgram() string { return "" }
