//go:build !race

package tui

// slowdown is how much slower than usual the code may be.
const slowdown = 1
