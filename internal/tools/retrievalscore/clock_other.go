//go:build !linux

package main

import "time"

var begun = time.Now()

// clock is how long the program runs: elsewhere than on Linux what else the machine does counts too.
func clock() time.Duration { return time.Since(begun) }
