package cli_test

import "testing"

// TestLockShowsProgress runs the command at a terminal, which names the server that is listed.
func TestLockShowsProgress(t *testing.T) {
	d := newDesk(t)
	d.write(".config/drawbridge/mcp.json", `{"servers": {"gone": {"command": "not-a-program"}}}`)
	d.answer("", 1, "", "listing gone  1 of 1\r\x1b[K", "lock", "write")
}
