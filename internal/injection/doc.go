// Package injection finds prompt injection in a text: instructions that were put into a tool definition or a result to
// control the model that reads it.
//
// CanonicalText returns a text without hidden characters. An Inspector then finds instructions in about ninety
// languages, also in disguise: in lookalike letters, in encodings, or split into pieces. Package shield decides what
// to do about a finding, and knows which part of a definition a text is.
package injection
