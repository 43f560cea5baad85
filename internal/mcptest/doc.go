// Package mcptest has the MCP servers that the tests of every other package run against: honest ones, built with the
// official Go SDK, and hostile or merely odd ones that speak JSON-RPC by hand, so that they can send bytes no SDK would.
//
// A test binary becomes any of them. Run comes first in TestMain; Command and Row then start the binary again as the
// server that they name:
//
//	func TestMain(m *testing.M) {
//		mcptest.Run()
//		os.Exit(m.Run())
//	}
//
// Servers says what there is and what each takes as arguments. The servers over HTTP are handlers for httptest.
//
// It is for tests only, and imports package wire, the SDK and nothing else of this program.
package mcptest
