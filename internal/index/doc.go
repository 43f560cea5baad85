// Package index ranks cards for a question: of ten thousand tools the few that a model should see.
//
// It promises that the same documents give the same ranking, in whatever order they came and whatever was there before
// them; that a question which shares a word with a document has an answer; and that an index knows of its own
// documents only, so that what is ranked for one caller depends on nothing that is hidden from them. It reads no file
// and asks no network.
package index
