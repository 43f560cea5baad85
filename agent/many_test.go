//go:build bench

package agent_test

// kills is how often TestKilled kills a session, and largeResult the size in bytes of a result that is cut.
const (
	kills       = 200
	largeResult = 50_000_000
)
