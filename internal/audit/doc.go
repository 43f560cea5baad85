// Package audit defines the records of calls. A record names the caller, the tool, the transport, the decision with
// its reason, and the outcome.
//
// A call that is sent has two records with the same ID. The first is written before the call is sent, and the second
// before the result is returned. A refused call has only one record. So every effect of a call has a record before
// it, and every returned result has a record of the outcome. If the first record cannot be written, a [CallLog]
// refuses the call. If the second cannot be written, it returns an error which states that the call may have had its
// effect. [MergeOutcomes] joins the two records of each call.
//
// [RedactionRules.AppendRecord] is the only function that encodes a record. It removes likely secrets from the
// arguments, and adds the SHA-256 of the original arguments. Secrets are found by names and by well-known prefixes,
// so other secrets may remain. A reader who guesses the original arguments can verify the guess with the hash. The
// content of a write to the workspace is replaced by its SHA-256 before: the workspace has it.
//
// Records are stored in the hash chain of package ledger. A [Checkpoint] signs the state of a chain. Package audit
// itself writes no files and stores no records.
package audit
