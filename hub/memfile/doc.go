// Package memfile makes files for memory that processes share.
//
// It promises that nobody else finds such a file, and that it is gone with the last process that has it. There are none but on Unix.
package memfile
