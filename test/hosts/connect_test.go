//go:build hosts

package hosts

import "testing"

// connect gives a client Drawbridge, as a person does. That lists the tools of the servers behind it once, so that they
// are there in the first list that the client gets and not in a list_changed, which not every client follows.
func connect(t *testing.T, h *home, client string) {
	t.Helper()
	h.run(t, drawbridge, "connect", client, "--yes")
}
