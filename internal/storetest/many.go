//go:build !race

package storetest

// manyVectors is the number of vectors in testManyVectors.
const manyVectors = 10_000
