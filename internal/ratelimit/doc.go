// Package ratelimit counts calls and reports when a call would exceed a limit. A [Quota] limits the calls that one
// caller makes. A [WindowLimiter] limits the calls to one server. A [LoopBreaker] detects a caller that repeats the
// same call with the same result. A [SeenSet] stores texts that may be used only once.
//
// All functions receive the current time as an argument. Quotas are pure functions of count and time: their callers
// store the counts. A stored count that cannot be read is an error and does not permit a call. Memory is bounded for
// any sequence of calls.
package ratelimit
