// Package ratelimit counts calls and says when there were too many: a quota for the caller, a pace for a server,
// and a breaker for the same call again and again.
//
// Its decisions are pure: what was counted before and the time come in, what is counted now comes out. A count that
// cannot be read is no permission. Memory is bounded whatever callers do.
package ratelimit
