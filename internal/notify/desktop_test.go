//go:build linux

package notify

import (
	"bufio"
	"os/exec"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
)

// A notificationService is the desktop's service on a bus of its own.
type notificationService struct{ shown chan []any }

// Notify is the method of the specification.
func (s notificationService) Notify(app string, replaces uint32, icon, title, body string, actions []string,
	hints map[string]dbus.Variant, timeout int32) (uint32, *dbus.Error) {
	s.shown <- []any{app, title, body, hints["urgency"].Value()}
	return 1, nil
}

// startBus starts a message bus and makes it the session's.
func startBus(t *testing.T) (address string) {
	t.Helper()
	path, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("there is no dbus-daemon")
	}
	cmd := exec.CommandContext(t.Context(), path, "--session", "--nofork", "--print-address")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address = strings.TrimSpace(address)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	return address
}

func TestDesktopNotification(t *testing.T) {
	conn, err := dbus.Connect(startBus(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	service := notificationService{make(chan []any, 1)}
	if err := conn.Export(service, "/org/freedesktop/Notifications", "org.freedesktop.Notifications"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RequestName("org.freedesktop.Notifications", 0); err != nil {
		t.Fatal(err)
	}
	n, logged := run(t, Options{Desktop: true})
	a := call
	a.Tool, a.Client = "fs__<b>wipe</b>\x1b[2J", strings.Repeat("x", 500)
	n.Announce(a)
	got := <-service.shown
	body := got[2].(string)
	if got[0] != "Drawbridge" || got[1] != "Drawbridge: a call waits for your approval" || got[3] != byte(2) ||
		!strings.HasSuffix(body, "\ndrawbridge ask show k3f9qzab") ||
		!strings.HasPrefix(body, `fs__&lt;b&gt;wipe&lt;/b&gt;\u001b[2J, called by client:ci (xxx`) || len(body) > 300 {
		t.Errorf("shown: %q", got)
	}
	if text := logged(); text != "" {
		t.Errorf("logged: %s", text)
	}
}

// TestNoDesktop: without a desktop the log says why.
func TestNoDesktop(t *testing.T) {
	startBus(t)
	if text := deliver(t, Options{Desktop: true}); !strings.Contains(text, "org.freedesktop.Notifications was not provided") {
		t.Errorf("logged: %s", text)
	}
}
