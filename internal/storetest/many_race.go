//go:build race

package storetest

// manyVectors is how many vectors are many. The race detector makes each take ten times as long, and sees no more in
// more of them.
const manyVectors = 1_200
