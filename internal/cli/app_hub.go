package cli

import (
	"context"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
)

// A hubClient implements admin.HubClient: it sends requests to the hub that uses the store of this process.
type hubClient struct{ a *app }

var _ admin.HubClient = hubClient{}

func (c hubClient) Process() (int, error) {
	lock, err := hub.ReadLockState(c.a.hubOptions())
	if err != nil || !lock.Held {
		return 0, err
	}
	return lock.PID, nil
}

func (c hubClient) Summary() (*admin.HubSummary, error) {
	state, err := hub.ReadState(c.a.hubOptions())
	switch {
	case errors.Is(err, hub.ErrNoHub):
		return nil, nil
	case err != nil:
		return nil, err
	}
	s := &admin.HubSummary{PID: state.PID, Since: state.Since, Memory: state.Memory, Servers: len(state.Servers)}
	for _, client := range state.Clients {
		s.Clients = append(s.Clients, client.Door)
	}
	return s, nil
}

func (c hubClient) Goroutines(ctx context.Context) ([]byte, error) {
	return hub.ReadProfile(ctx, c.a.hubOptions(), hub.GoroutineProfile, 0)
}

func (c hubClient) CPUProfile(ctx context.Context, during time.Duration) ([]byte, error) {
	return hub.ReadProfile(ctx, c.a.hubOptions(), hub.CPUProfile, during)
}
