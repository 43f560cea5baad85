// Package workspace defines the objects of a workspace, and which writes to them are legal.
//
// A workspace has pages, and a page has blocks, properties, tags and attachments. Each of these is an entity. An entity
// records who wrote it (the [Origin] of its content) and whether a person has accepted it (its [Lifecycle]).
// Derivation links lead from an entity to the entities that it was made from.
//
// Every change is a [Write]. [NewWrite] is the only function that makes one: it checks the rights of the [Actor],
// derives origin and lifecycle from the kind of actor, and checks the change. A store applies only Writes. For the
// content that is there already, [Settle] decides whether a new revision takes its place or waits for a person.
//
// The package has no state, and reads and writes no files.
package workspace
