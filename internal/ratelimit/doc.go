// Package ratelimit counts calls and reports when a caller or a server exceeds a limit. A [Quota] limits the calls of a
// caller. A [WindowLimiter] limits the calls of a server. A [LoopBreaker] detects a caller that repeats the same call.
// A [SeenSet] stores texts that may be used only once.
//
// All functions receive the current time as an argument. Quotas are pure functions of count and time: their callers
// store the counts. A stored count that cannot be read is an error and does not permit a call. Memory is bounded for
// any sequence of calls.
package ratelimit
