// Package audit is what is kept of each call: who called what through which door, what was decided and why, and what
// came of it.
//
// A call leaves two records, which share its ID: one before anything is sent, one before the answer goes out; a call
// that was refused leaves one. So there is no effect without a record of the intent, and no answer without a record of
// the outcome. [Fold] puts the two together again.
//
// [Rules] write a record, and there is no other way to bytes: what looks like a secret in the arguments is left out on
// the way, and their SHA-256 stays. What the rules let through is a guess by names and by how well-known secrets
// begin, as every such guess is; a hash of a guessable value can be guessed.
//
// Records are kept in the hash chain of package ledger. A [Checkpoint] signs how far a chain had come.
//
// Nothing here does input or output, knows what time it is, or keeps state of its own.
package audit
