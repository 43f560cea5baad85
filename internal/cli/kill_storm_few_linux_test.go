//go:build !bench

package cli_test

// stormRounds is how many gateways TestSIGKILLStorm kills.
const stormRounds = 6
