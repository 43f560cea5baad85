//go:build race

package storetest

// manyVectors is the number of vectors in testManyVectors. It is smaller here, because with the race detector each
// vector takes ten times as long, and more vectors do not find more races.
const manyVectors = 1_200
