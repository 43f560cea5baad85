// Package shield checks text of servers before a model reads it. It finds prompt injection: instructions that an
// attacker inserted into a tool definition or a result, to control the model. In the detector, an order is such an
// instruction, and an answer is the result of a call.
//
// Each text is returned in one canonical form without hidden characters. Likely instructions to a model are reported
// with their position and a reason, and are blanked if the match is certain. A text without findings is returned
// unchanged, byte for byte. The package refuses nothing: its caller acts on the report. Equal input has equal output.
// The time is linear in the length of the input.
//
// CanonicalText returns a text without hidden characters. An Inspector then finds instructions in about ninety
// languages, also if they are written in lookalike letters, encoded, or split into pieces. A Shield decides the action
// for a finding, and determines from which part of a definition a text comes.
//
// The package does not detect false statements that contain no instruction. If a model must not act on text of servers,
// use a policy, which limits the calls.
//
// The package uses no network, no files and no clock.
package shield
