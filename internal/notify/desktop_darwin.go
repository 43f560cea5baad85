package notify

import (
	"context"
	"os/exec"
)

// notificationScript is an AppleScript that shows a notification: its first argument is the title, its second the body.
// The texts are arguments, not parts of the script, so they cannot inject code.
const notificationScript = `on run argv
	display notification (item 2 of argv) with title (item 1 of argv)
end run`

// showOnDesktop shows a notification by an AppleScript.
func showOnDesktop(ctx context.Context, title, body string) error {
	return exec.CommandContext(ctx, "/usr/bin/osascript", "-e", notificationScript, title, body).Run()
}
