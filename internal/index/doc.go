// Package index ranks cards (tools) for a question. Its purpose is to find, among ten thousand tools, the few tools
// that a model should see.
//
// The ranking of the same documents for the same question is always the same. It does not depend on the order and the
// history of updates. If a document shares a word with a question, other than a stop word, the question has at least
// one hit. Each class of callers has its own index, which contains only the tools that these callers may call. So
// hidden tools do not influence the ranking. The package reads no files and uses no network.
package index
