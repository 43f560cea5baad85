package mcptest_test

import (
	"os"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

func TestMain(m *testing.M) {
	gateway.RunReaperProcess()
	mcptest.RunIfServer()
	mcptest.RunIfNamedServer()
	_ = os.Setenv(gateway.KeychainVariable, "off") // the machine's own is not ours to try
	os.Exit(m.Run())
}
