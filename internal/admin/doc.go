// Package admin contains the functions with which a person administers Drawbridge. They cover configured servers,
// approvals, sign-ins, held definitions, withheld results, trust, clients, the ledger and the audit. The package also
// finds the problems of a configuration, and names a fix for each. A command line, a web page or a Go program can call
// the same functions. internal/cli, the command line, only parses flags and prints results.
//
// A row is the entry of one server in a configuration file. A function that edits a file replaces one value of the
// file, or changes nothing if it fails. A row in a project directory must be approved by a person before its server is
// started. The approval is valid only for the text of the row that the person saw. Results do not contain values that
// may be secrets, with two exceptions: config.Server, which must not be shown, and a new client's token. A person's
// decisions are recorded in the audit through Options.AdminRecorder.
//
// The package prints nothing. It asks questions and starts servers only through interfaces and functions that the
// calling code passes. A Service stores no state between two calls. A Ledger, an Audit and an Approvals must be closed
// after use, because each has an open store.
//
// The texts of errors are for people. Scripts may compare them, so they must not change.
package admin
