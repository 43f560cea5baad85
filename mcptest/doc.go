// Package mcptest has MCP servers for tests: one that answers with functions of the test, and one that misbehaves in a
// named way. A server is lenient: it validates of a request only what it needs for its answer.
//
// NewServer makes a server of tools, prompts and resources. It speaks both generations of the protocol, and is reached
// in two ways at once: Stdio returns the row of a server that is started as a process, HTTP the row of one on the
// loopback interface. In both, the functions run in the test itself and may use its variables. Requests returns what
// the server has received:
//
//	func TestMain(m *testing.M) {
//		gateway.RunReaperProcess()
//		mcptest.RunIfServer()
//		os.Exit(m.Run())
//	}
//
//	func TestMyAgent(t *testing.T) {
//		clock := mcptest.NewServer(t, mcptest.Tool{Name: "time", Answer: mcptest.Text("14:02")})
//		g, err := gateway.Open(t.Context(), gateway.Config{
//			Store:   gateway.MemoryStore,
//			Servers: []config.Server{clock.Stdio("clock")},
//		})
//		…
//	}
//
// The process that Stdio starts is the test binary, executed again: RunIfServer makes it carry lines between its
// standard streams and the test, and no other code of it runs.
//
// NewHostileServer makes a server with a Misbehaviour: it hangs, floods, lies about its tools or shows people forms
// that ask for passwords. A program that must withstand such servers can be tested with each of Misbehaviours. The
// resources that one uses (processes, memory, messages) are bounded by its size, and released when the test ends.
package mcptest
