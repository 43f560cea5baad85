//go:build race

package storetest

// many is how many vectors are many. The race detector makes each take ten times as long, and sees no more in more of them.
const many = 1_200
