// Package shield checks text of servers before a model reads it.
//
// Each text is returned in one canonical form without hidden characters. Likely instructions to a model are reported
// with their position and a reason, and are blanked if the match is certain. A text without findings is returned
// unchanged, byte for byte. The package refuses nothing: its caller acts on the report. Equal input has equal output.
// The time is linear in the length of the input.
//
// The package does not detect false statements that contain no instruction. If a model must not act on text of servers,
// use a policy, which limits the calls.
//
// The package uses no network, no files and no clock.
package shield
