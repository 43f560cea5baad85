package hub

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// notificationsTime is the time limit for the hub's response to the verb notifications.
const notificationsTime = 10 * time.Second

// Notifications returns the notifications that a server of the hub declares and the notifications that it has sent. The
// error is ErrNoHub if no hub runs, or a *drawbridge.Fault with the code NotFound if the hub does not run that server.
func Notifications(ctx context.Context, o Options, id drawbridge.ServerID) (r drawbridge.NotificationReport, err error) {
	said := o.newHello(wantNotifications)
	said.Server = string(id)
	err = requestLine(ctx, o, said, notificationsTime, func(text []byte) error { return json.Unmarshal(text, &r) })
	return r, err
}

// sendNotifications handles the verb notifications. Several gateways may have a server of that name. If their
// configurations of the server are equal, they share the server. Otherwise the server of the first gateway is used, as
// for the verb logs.
func (h *hub) sendNotifications(said hello, l *lineConn) error {
	id := drawbridge.ServerID(said.Server)
	gateways := h.gatewaysWith(id)
	if len(gateways) == 0 {
		return l.sendWelcome(0, notRunFault(id))
	}
	report, err := gateways[0].gateway.Notifications(id)
	if err != nil {
		return l.sendWelcome(0, err)
	}
	if _, err := h.welcomeWith(id, l); err != nil {
		return err
	}
	err = l.writeJSON(report)
	_ = l.conn.Close()
	return err
}
