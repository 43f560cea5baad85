// Package trail keeps what is said to a client on a stream, so that the stream can outlive its connections.
//
// It promises that whoever says something waits for nobody's reading, unless it must be heard and there is no room; that a
// client which comes back with the id of the last event it heard gets the rest of that stream in order, and of no other;
// and that what is kept is bounded, for each session and for all of them. It makes no goroutine and no timer.
package trail
