//go:build !linux

package cli

// parentProgram returns "": only Linux has an implementation.
func parentProgram() string { return "" }
