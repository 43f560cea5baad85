// Package trust keeps the score of a server: a number from 0 to 1 that follows its behaviour.
//
// A server begins at 1. What speaks against it takes from that, calls that succeed add a little, and time gives back
// half of what is missing in each half-life. Under a threshold the server is quarantined, until it is a little above
// it. The score is a pure fold of events: the same events give the same score whenever and wherever they are folded,
// in whichever order those of one moment come; one more event against a server never raises its score at any time.
package trust
