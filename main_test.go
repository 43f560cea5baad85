package drawbridge_test

import (
	"os"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

func TestMain(m *testing.M) {
	gateway.RunReaperProcess()
	mcptest.RunIfNamedServer()
	_ = os.Setenv(gateway.KeychainVariable, "off") // the machine's own is not ours to try
	os.Exit(m.Run())
}

// echoServer is a server with one tool: the test binary itself, started again.
func echoServer(id string) config.Server { return testServer(id, "legacy") }

// testServer is the row of a server that this test binary becomes.
func testServer(id, behaviour string) config.Server {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return config.Server{
		ID: drawbridge.ServerID(id), Command: self,
		Env: []config.NameValue{{Name: mcptest.ServerVariable, Value: behaviour}},
	}
}
