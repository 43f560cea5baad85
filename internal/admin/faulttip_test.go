package admin_test

import (
	"errors"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
)

// TestTip: what is to be tried next is about what is wrong, an address or a command.
func TestTip(t *testing.T) {
	for fault, want := range map[string]string{
		"mount u: connect: status 404 Not Found":                                                      "Check that the URL is right: nothing answers there as an MCP server.",
		"mount u: connect: status 410 Gone":                                                           "Check that the URL is right: nothing answers there as an MCP server.",
		"mount u: connect: status 401 Unauthorized":                                                   "Check your authentication credentials.",
		`mount m: connect: command "m404" not found on PATH (install it, or configure its full path)`: "",
		"mount s: connect: timeout: no answer within 1s": "The server may be slow or unresponsive. Try increasing the timeout. " +
			"connect_timeout under [mcp] in your drawbridge.toml limits connecting; a server's own timeout limits its calls.",
		"mount c: connect: start node: its directory /none is not there (make it)": "",
		"mount u: connect: dial tcp 127.0.0.1:404: connect: connection refused":    "Check that the server is running and that its URL is right.",
	} {
		if got := admin.FaultTip(errors.New(fault)); got != want {
			t.Errorf("%s: %q", fault, got)
		}
	}
}
