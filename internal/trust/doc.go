// Package trust keeps the score of a server: a number from 0 to 1 that follows its behaviour.
//
// A server starts with 1. Events against the server lower the score, and successful calls raise it a little. Time restores
// half of the missing part in each half-life. Below a threshold the server is quarantined until its score is a little above
// the threshold. The score is a pure function of the events: the same events have the same score in every process, in any
// order of simultaneous events. An additional event against a server never raises its score at any time.
package trust
