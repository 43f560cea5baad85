package notify

import (
	"context"
	"os/exec"
)

// notificationScript shows its second argument under the title of its first one. The texts are arguments, not parts of
// the script.
const notificationScript = `on run argv
	display notification (item 2 of argv) with title (item 1 of argv)
end run`

// showOnDesktop shows a notification by AppleScript.
func showOnDesktop(ctx context.Context, title, body string) error {
	return exec.CommandContext(ctx, "/usr/bin/osascript", "-e", notificationScript, title, body).Run()
}
