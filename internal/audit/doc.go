// Package audit defines the records of calls: who called which tool over which transport, the decision and its reason,
// and the outcome.
//
// A call has two records with the same ID: one before it is sent, and one before its result is returned. A refused call
// has one. So no call has an effect without a record of the intent, and no result is returned without a record of the
// outcome. If a record cannot be written, a [CallLog] refuses the call, or returns an error about its possible effect.
// [MergeOutcomes] joins the two records again.
//
// [RedactionRules] are the only way to write a record. They remove likely secrets from the arguments, and keep their
// SHA-256. They find secrets by names and by well-known prefixes, so others may stay; and a hash of a guessable value
// can be guessed.
//
// Records are stored in the hash chain of package ledger. A [Checkpoint] signs the state of a chain. The package writes
// no files, and keeps no records.
package audit
