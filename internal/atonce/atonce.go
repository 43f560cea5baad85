// Package atonce writes to a pipe where that takes no waiting.
//
// Whoever leaves a message to another goroutine, since the other end may not read, wakes a thread for each: that costs more than to
// write a small message. It promises that a message goes out whole or not at all, and that nobody waits for the other end as long as
// nobody else writes to the pipe at the same time.
package atonce
