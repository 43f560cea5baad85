package admin

import (
	"context"
	"time"
)

// A HubClient sends requests to the hub of the store. It is implemented outside this package, because the hub itself
// uses this package to answer approvals.
type HubClient interface {
	// Process returns the ID of the hub's process; 0 if no hub is running.
	Process() (pid int, err error)
	// Summary returns a summary of the hub; nil if no hub is running.
	Summary() (*HubSummary, error)
	// Goroutines returns the stacks of the hub's goroutines as text.
	Goroutines(ctx context.Context) ([]byte, error)
	// CPUProfile records a CPU profile of the hub for this time, and returns the profile in pprof format.
	CPUProfile(ctx context.Context, during time.Duration) ([]byte, error)
}

// A HubSummary describes a running hub. It contains no names of clients or servers.
type HubSummary struct {
	PID   int
	Since time.Time
	// Memory is the resident memory of the process, in bytes.
	Memory int64
	// Clients are the transports of the clients.
	Clients []string
	Servers int
}
