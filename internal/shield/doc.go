// Package shield judges what a server says before a model reads it.
//
// It promises that a text comes out in one canonical form, in which nothing is hidden; that what would give a model
// orders is named, with the place and the reason, and blanked where it is sure; that an honest text comes out as it
// came, to the byte; that nothing is refused here: who asked decides what to do with a report. Same in, same out, in
// time that grows with the length of the text. It promises no more than rules can: prose that is merely dishonest
// passes, and who must not act on prose needs a policy, not a filter.
//
// The package is pure: no network, no files, no clock.
package shield
