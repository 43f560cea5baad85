//go:build unix

package bridge

import (
	"os"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcptest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	Reap()
	if os.Getenv(hostVariable) != "" {
		os.Exit(playHost())
	}
	mcptest.Run()
	// A server of the SDK that is replaced while it has a session never ends that session.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read"))
}
