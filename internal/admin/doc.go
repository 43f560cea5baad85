// Package admin is the servers that a person has configured, and what may be done with them: seen, added, removed,
// turned on and off, approved and rejected, signed in at and out of. The command line and a session are two doors to
// it.
//
// It promises that a change is made to one value of one file, in place, or not at all; that what a project brings is
// approved as the person saw it and no other way, so that a file that changes between the question and the answer is
// not approved; and that nothing that may be a secret is in what it gives back, but for config.Server, which doors
// keep to themselves. It prints nothing, asks nothing but through the functions it is given, starts no server but
// through those, and holds nothing between two calls.
//
// The sentences of its errors are for people, and scripts may know them: they stay as they are.
package admin
