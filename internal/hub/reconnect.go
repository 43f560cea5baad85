package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// A reconnectAnswer is the hub's response to the verb reconnect. Error is the reason why the server could not be
// connected again; empty for success.
type reconnectAnswer struct {
	Error string `json:"error,omitempty"`
}

// Reconnect asks the hub to close the connections of a server and to connect again. The error is ErrNoHub if no hub
// runs, or a *drawbridge.Fault with the code NotFound if the hub does not run that server. If the server does not
// start, the error is the reason.
func Reconnect(ctx context.Context, o Options, id drawbridge.ServerID) error {
	said := o.newHello(wantReconnect)
	said.Server = string(id)
	var did reconnectAnswer
	answered := false
	err := requestLines(ctx, o, said, func(text []byte) error {
		answered = true
		return json.Unmarshal(text, &did)
	})
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case !answered:
		return errNoHub // the hub ended meanwhile
	case did.Error != "":
		return errors.New(did.Error)
	}
	return nil
}

// sendReconnect handles the verb reconnect, for every gateway that has the server.
func (h *hub) sendReconnect(ctx context.Context, said hello, l *lineConn) error {
	id := drawbridge.ServerID(said.Server)
	gateways, err := h.welcomeWith(id, l)
	if err != nil || len(gateways) == 0 {
		return err
	}
	var errs []error
	for _, t := range gateways {
		errs = append(errs, t.gateway.Reconnect(ctx, id))
	}
	var did reconnectAnswer
	if err := errors.Join(errs...); err != nil {
		did.Error = err.Error()
	}
	err = l.writeJSON(did)
	_ = l.conn.Close()
	return err
}

// gatewaysWith returns the gateways that have mounted, or may mount, a server of this name.
func (h *hub) gatewaysWith(id drawbridge.ServerID) []*sharedGateway {
	return slices.DeleteFunc(h.currentGateways(), func(t *sharedGateway) bool {
		row, ok := t.gateway.Config().Lookup(id)
		return !ok || row.Phase != drawbridge.Idle
	})
}

func notRunFault(id drawbridge.ServerID) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: fmt.Sprintf("the hub runs no server %q", id),
		Next: "drawbridge ps",
	}
}
