// Package index ranks cards for a question: it finds, among ten thousand tools, the few that a model should see.
//
// The same documents give the same ranking, independent of the order and history of updates. A question that shares a
// word with a document has a hit. An index knows only its own documents, so a ranking for one caller does not depend
// on tools that are hidden from the caller. The package reads no files and uses no network.
package index
