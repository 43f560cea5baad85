// Package injection finds prompt injection in a text: instructions that an attacker inserted into a tool definition or
// a result, to control the model. In this package, an order is such an instruction, and an answer is the result of a
// call.
//
// CanonicalText returns a text without hidden characters. An Inspector then finds instructions in about ninety
// languages. It also finds instructions that are written in lookalike letters, encoded, or split into pieces. Package
// shield decides the action for a finding, and determines from which part of a definition a text comes.
package injection
