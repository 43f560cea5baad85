// Package ledger records which tools were enrolled and retired, and derives the deck from that record.
//
// The record is an append-only log of [Entry] values. The live entries are the fold of that log, [FoldEntries]: a pure
// function that returns the same [Snapshot] for the same entries in any order, and a result for any entries at all.
//
// A journal stores each entry as a [Record] of a hash chain; see [Journal]. [VerifyChains] names the first record that
// is missing, torn, out of order or edited. The chain is not signed. It detects damage and careless edits. It does not
// detect a writer who replaces all later records, or who removes the end together with the journal's note of it.
//
// Drawbridge itself keeps only a Snapshot, loaded with [FoldStream] and advanced with [Snapshot.With], because a log
// grows without bound. [Ledger] keeps the log and its fold as one immutable value. It is for tools and tests that need
// the history: what was live at a moment, and what a transition would append.
//
// The package does no input or output, reads no clock and keeps no state.
package ledger
