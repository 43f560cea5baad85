//go:build !linux

package cli

// parent is not known here.
func parent() string { return "" }
