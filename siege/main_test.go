package siege

import (
	"os"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/fakemcp"
	"github.com/drawbridge-mcp/drawbridge/gateway"
)

func TestMain(m *testing.M) {
	gateway.Reap()
	fakemcp.Main()
	_ = os.Setenv(gateway.KeychainVariable, "off") // the machine's own is not ours to try
	os.Exit(m.Run())
}
