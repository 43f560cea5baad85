// Package ratelimit counts calls and reports when there were too many. A [Quota] limits a caller, a [WindowLimiter]
// limits a server, and a [LoopBreaker] stops the same call from being repeated. A [SeenSet] remembers texts that may be
// used once.
//
// Time is an argument, and quotas are pure functions of count and time: callers store the counts. A stored count that
// cannot be read is an error, never a permission. Memory is bounded for any sequence of calls.
package ratelimit
