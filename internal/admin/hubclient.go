package admin

import (
	"context"
	"time"
)

// A HubClient asks the hub of the store. The composition of the program implements it, because the hub itself uses this
// package to answer approvals.
type HubClient interface {
	// Process returns the process that is the hub; 0 if no hub runs.
	Process() (pid int, err error)
	// Summary returns a summary of the hub; nil if no hub runs.
	Summary() (*HubSummary, error)
	// Goroutines returns the stacks of the hub's goroutines as text.
	Goroutines(ctx context.Context) ([]byte, error)
	// CPUProfile returns what the hub computes during a time, in the format of pprof.
	CPUProfile(ctx context.Context, during time.Duration) ([]byte, error)
}

// A HubSummary describes a running hub without names.
type HubSummary struct {
	PID   int
	Since time.Time
	// Memory is the resident memory of the process, in bytes.
	Memory int64
	// Clients has the transport of each client.
	Clients []string
	Servers int
}
