//go:build !linux

package cli_test

// outlive has no counterpart where there is no subreaper.
func outlive() {}

// storm has none either.
func storm() {}
