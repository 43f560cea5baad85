//go:build unix

package upstream

import (
	"os"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	RunReaperProcess()
	if os.Getenv(hostVariable) != "" {
		os.Exit(playHost())
	}
	mcptest.RunIfNamedServer()
	// A server of the SDK that is replaced while it has a session never ends that session.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read"))
}
