//go:build !race

package storetest

// many is how many vectors are many.
const many = 10_000
