//go:build !race

package storetest

// manyVectors is how many vectors are many.
const manyVectors = 10_000
