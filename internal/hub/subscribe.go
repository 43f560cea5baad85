package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
)

// A Change is a line of the response to the verb subscribe. It contains the complete new list of one kind. The first
// three lines contain the current lists.
type Change struct {
	// Kind is "approvals", "servers" or "clients". Only the field with that name is set; it is missing if the list is
	// empty.
	Kind      string              `json:"change"`
	Approvals []admin.PendingCall `json:"approvals,omitempty"`
	Servers   []Server            `json:"servers,omitempty"`
	Clients   []Client            `json:"clients,omitempty"`
}

// subscribeInterval is the interval at which the hub compares its state with the state that a subscriber has received.
const subscribeInterval = 300 * time.Millisecond

// Subscribe calls each with every change of the pending approvals, the servers and the clients of the hub. It stops
// when ctx ends or each returns an error. The error is ErrNoHub if no hub runs, if the hub is too old, or if the hub
// ended.
func Subscribe(ctx context.Context, o Options, each func(Change) error) error {
	err := requestLines(ctx, o, o.newHello(wantSubscribe), func(text []byte) error {
		var c Change
		if err := json.Unmarshal(text, &c); err != nil {
			return err
		}
		return each(c)
	})
	switch {
	case isUnknownVerb(err):
		return errNoHub
	case err == nil && ctx.Err() == nil:
		return errNoHub
	case err == nil:
		return context.Cause(ctx)
	}
	return err
}

// sendChanges handles the verb subscribe: it sends changes of the hub's state until the peer closes the connection.
func (h *hub) sendChanges(ctx context.Context, l *lineConn) error {
	if err := l.sendWelcome(os.Getpid(), nil); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h.cancelAtClose(l, cancel)
	queue, err := h.adminService().OpenApprovals(ctx, false)
	if err != nil {
		return err
	}
	defer queue.Close()
	sent := map[string][]byte{}
	tick := time.NewTicker(subscribeInterval)
	defer tick.Stop()
	for {
		pending, err := queue.Pending(ctx)
		if err != nil {
			return err
		}
		s := h.state()
		for _, c := range []Change{{Kind: "approvals", Approvals: pending}, {Kind: "servers", Servers: s.Servers},
			{Kind: "clients", Clients: s.Clients}} {
			if err := l.sendIfChanged(c, sent); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// sendIfChanged sends the list in c, unless it equals the last list of the same kind that the peer has received. sent
// holds the last list of each kind. Memory is not compared, because it changes constantly.
func (l *lineConn) sendIfChanged(c Change, sent map[string][]byte) error {
	compared := c
	compared.Servers, compared.Clients = nil, nil
	for _, one := range c.Servers {
		one.Memory = 0
		compared.Servers = append(compared.Servers, one)
	}
	for _, one := range c.Clients {
		one.Memory = 0
		compared.Clients = append(compared.Clients, one)
	}
	text, err := json.Marshal(compared)
	if err != nil || bytes.Equal(text, sent[c.Kind]) {
		return err
	}
	sent[c.Kind] = text
	return l.writeJSON(c)
}
