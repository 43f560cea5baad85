//go:build race

package tui

// slowdown is how much slower than usual the code may be: the race detector watches it.
const slowdown = 3
