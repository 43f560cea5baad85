package admin

import (
	"context"
	"time"
)

// A HubClient sends requests to the hub, the process that runs the servers for all clients of a user and store. It is
// implemented outside this package: the hub imports this package, so this package cannot import the hub.
type HubClient interface {
	// Process returns the process ID of the hub; 0 if no hub is running.
	Process() (pid int, err error)
	// Summary returns a summary of the hub; nil if no hub is running.
	Summary() (*HubSummary, error)
	// Goroutines returns the stacks of the hub's goroutines as text.
	Goroutines(ctx context.Context) ([]byte, error)
	// CPUProfile records a CPU profile of the hub for the duration during, and returns the profile in pprof format.
	CPUProfile(ctx context.Context, during time.Duration) ([]byte, error)
}

// A HubSummary describes a running hub. It contains no names of clients or servers.
type HubSummary struct {
	PID   int
	Since time.Time
	// Memory is the resident memory of the process, in bytes.
	Memory int64
	// Clients has an element for each connected client: the transport of its connection.
	Clients []string
	Servers int
}
