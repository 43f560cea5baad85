package toolsearch_test

import (
	"os"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.RunWorker()
	os.Exit(m.Run())
}
