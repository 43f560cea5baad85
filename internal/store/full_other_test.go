//go:build !unix

package store_test

// fullName is no program here: there is no bound on files.
const fullName = "store-full"

func full([]string) int { return 1 }

const canLimitFiles = false

func limitFiles(uint64) error { return nil }
