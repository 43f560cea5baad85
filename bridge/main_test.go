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
	goleak.VerifyTestMain(m)
}
