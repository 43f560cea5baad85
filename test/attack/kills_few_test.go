//go:build !bench

package attack

// forcedKills is how many scripts TestForcedKills has killed.
const forcedKills = 12
