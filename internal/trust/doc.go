// Package trust computes the trust score of a server: a number from 0 to 1 that depends on the server's behaviour.
//
// The score starts at 1. Events against the server lower the score; successful calls raise it a little. In each
// half-life, the difference between the score and 1 is halved. If the score falls below a threshold, the server is
// quarantined until its score is a little above the threshold.
//
// The score is a pure function of the events, the time and the rules: every process computes the same score from the
// same events. The order of simultaneous events does not matter. If an event against a server is added to its events,
// the score is not higher than before, at any time.
package trust
