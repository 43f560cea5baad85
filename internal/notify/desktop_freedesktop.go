//go:build linux || freebsd || netbsd || openbsd || dragonfly

package notify

import (
	"context"
	"html"

	"github.com/godbus/dbus/v5"
)

// showOnDesktop shows a notification through the D-Bus service of the desktop (Desktop Notifications Specification
// 1.3).
func showOnDesktop(ctx context.Context, title, body string) error {
	conn, err := dbus.ConnectSessionBus(dbus.WithContext(ctx))
	if err != nil {
		return err
	}
	defer conn.Close()
	const service = "org.freedesktop.Notifications"
	const urgent = byte(2)
	hints := map[string]dbus.Variant{"urgency": dbus.MakeVariant(urgent)}
	// The body is escaped, because services may interpret it as markup.
	return conn.Object(service, "/org/freedesktop/Notifications").CallWithContext(ctx, service+".Notify", 0,
		"Drawbridge", uint32(0), "", title, html.EscapeString(body), []string{}, hints, int32(-1)).Err
}
