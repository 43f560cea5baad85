// Package admin has the functions with which a person administers Drawbridge. They cover configured servers, approvals,
// sign-ins, quarantined definitions, withheld results, trust, clients, the ledger and the audit. A terminal, a web page
// and a Go program call the same functions; internal/cli only parses flags and prints.
//
// A row is the entry of one server in a configuration file. A change replaces one value of one file, or nothing. A
// project's row is approved in the form that the person saw. If the file changes before the person answers, the row is
// not approved. Results do not contain values that may be secrets, with two exceptions: config.Server, which callers
// must not show, and a new client's token. Decisions are recorded in the audit through Options.AdminRecorder.
//
// The package prints nothing. It asks questions and starts servers only through functions that the caller passes. A
// Service has no state between two calls. A Ledger, an Audit and Approvals have a store open until they are closed.
//
// The texts of errors are for people. Scripts may match them, so they do not change.
package admin
