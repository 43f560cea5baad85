// Package admin holds the functions by which a person administers Drawbridge: configured servers, approvals, sign-ins,
// definitions and results that are held, trust, clients, the ledger and the audit. A terminal, a web page and a Go
// program call the same functions; internal/cli only parses flags and prints.
//
// A change replaces one value of one file, in place, or nothing. A row that a project brings is approved as the person
// saw it: if the file changes between the question and the answer, the row is not approved. Results contain no value
// that may be a secret, except config.Server, which callers must not show, and a new client's token. The audit records
// decisions through Options.AdminRecorder.
//
// The package prints nothing and asks only through the functions it is given. It starts servers only through those. A
// Service keeps no state between two calls; a Ledger, an Audit and Approvals hold a store until they are closed.
//
// The sentences of its errors are for people. Scripts may match them, so they stay stable.
package admin
