// Package index ranks cards for a question: it finds, among ten thousand tools, the few tools that a model should
// see.
//
// The same documents always have the same ranking: it does not depend on the order and history of updates. If a
// document shares a word with a question, other than a stop word, the question has at least one hit. An index
// contains only its own documents. So a ranking for one caller does not depend on tools that are hidden from that
// caller. The package reads no files and uses no network.
package index
