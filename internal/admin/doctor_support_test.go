package admin_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
)

// TestSupportedSystems: one system is the current one, and it is tested exactly where these tests run for each
// change.
func TestSupportedSystems(t *testing.T) {
	all := admin.SupportedSystems()
	i := slices.IndexFunc(all, func(s admin.SystemSupport) bool { return s.Current })
	if i < 0 || all[i].System != runtime.GOOS+"/"+runtime.GOARCH {
		t.Fatalf("this system is not among %+v", all)
	}
	if want := all[i].System == "linux/amd64"; all[i].Tested != want {
		t.Errorf("%s: tested %t", all[i].System, all[i].Tested)
	}
}
