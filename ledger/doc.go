// Package ledger represents a log of the tools that were enrolled and retired, and computes the live tools from this
// log. A tool is live if it was enrolled and not retired afterwards. A card is an enrolled tool.
//
// The log is an append-only list of [Entry] values. The fold of the log is the list of its live entries, see
// [FoldEntries]. Folding is a pure function: it returns the same [Snapshot] for the same entries in any order, and
// accepts any entries.
//
// A [Journal] stores each entry as a [Record] in a hash chain. [VerifyChains] reports the first record that is missing,
// torn, out of order or edited. The chain is not signed, so it detects damage and careless edits only. It does not
// detect that a writer replaced all later records. Nor does it detect that a writer removed the last records and also
// changed the journal's stored number of the last record.
//
// Drawbridge keeps only a Snapshot in memory, because a log grows without limit. It loads the Snapshot with
// [FoldStream] and updates it with [Snapshot.With]. A [Ledger] contains the log and its fold as one immutable value. It
// is for tools and tests that need the history. Examples are the live entries at an earlier time, and the entries that
// a change would append.
//
// The package does no input or output, does not read the clock and has no global state.
package ledger
