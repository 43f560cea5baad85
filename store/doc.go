// Package store keeps what must outlive a process: the journal of the ledger, the last listing and status of every server,
// and the secrets that processes share.
//
// It is one SQL store in two dialects. A path is a SQLite file, which several processes may open, make and write at the
// same moment; a postgres:// URL is a database on a server. It promises that what a method has acknowledged is there after
// a crash of the process or the machine, whole, and that what it has not acknowledged is there whole or not at all. Times
// are the database's own, in UTC, to the millisecond.
//
// Errors are *drawbridge.Fault values, kind Backend, that name the file or the server. Neither they nor anything else this
// package says show what is stored. It writes no log.
package store
