// Package ledger is the record of what was enrolled and retired, and the deck that follows from it.
//
// The record is a log of [Entry] values that is only ever added to. What is live is the fold of that log ([Reduce]): a
// pure function that gives the same [Snapshot] for the same entries in whatever order they come, and an answer for any
// entries at all. A [Ledger] is a log with its fold, as a value: a transition gives a new ledger and leaves the old
// one as it was. It costs what changed and what is live, never the length of the log.
//
// Persisted, an entry is a [Record] of a hash chain, kept by a [Journal]; [Verify] names the first record that is
// missing, torn, out of order or edited. The chain is not signed: it tells damage and careless edits, and not the work
// of somebody who rewrites every record after theirs, or cuts the end off together with what the journal knows of it.
//
// Nothing here does input or output, knows what time it is, or keeps state of its own.
package ledger
