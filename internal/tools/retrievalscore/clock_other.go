//go:build !linux

package main

import "time"

var begun = time.Now()

// clock returns the time since the program started. Unlike on Linux, it includes the time that other programs use.
func clock() time.Duration { return time.Since(begun) }
