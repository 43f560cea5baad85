// Package encoder gives a text a place among others by what it means, with nothing but what is built in: a vector for each of
// some ten thousand words, and for the pieces of those it does not know, added up.
//
// It promises the same vector for the same text in every process and on every machine, since it adds integers; that nothing
// is read or made before the first text; and a vector in some ten microseconds. It knows English words: of a text in another
// script it knows nothing, and says so.
//
// The weights are made by internal/encoderlearn: see docs/encoder.md for what they were learnt from.
package encoder
