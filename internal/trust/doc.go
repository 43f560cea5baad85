// Package trust computes the trust score of a server: a number from 0 to 1 that depends on the server's behaviour.
//
// The score starts at 1. Events against the server lower the score; successful calls raise it a little. In each
// half-life, half of the difference from 1 is restored. Below a threshold the server is quarantined until its score is
// a little above the threshold. The score is a pure function of the events: every process computes the same score from
// the same events. The order of simultaneous events does not matter. An additional event against a server never raises
// its score at any time.
package trust
