// Package shield checks text of servers before a model reads it.
//
// Each text is returned in one canonical form without hidden characters. Likely instructions to a model are reported
// with place and reason, and blanked if the match is certain. An honest text is returned unchanged, to the byte. The
// package refuses nothing: its caller decides on a report. Equal input has equal output, in time linear in its length.
//
// It does not detect prose that is merely dishonest. If a model must not act on text of servers, use a policy.
//
// The package is pure: no network, no files, no clock.
package shield
