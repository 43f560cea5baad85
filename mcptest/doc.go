// Package mcptest contains MCP servers for tests: a server that answers with functions of the test, and a server that
// misbehaves in a named way. A server is lenient: it validates only the parts of a request that it needs for its
// response.
//
// NewServer returns a server of tools, prompts and resources. It speaks both generations of the protocol: the stateful
// versions up to 2025-11-25, and the stateless version 2026-07-28. Stdio returns the configuration with which
// Drawbridge starts the server as a process. HTTP returns the configuration with which Drawbridge reaches the same
// server over HTTP, on the loopback interface. In both cases, the functions run in the test itself and may use its
// variables. Requests returns the messages that the server has received:
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
// The process that the configuration of Stdio starts is the test binary, executed again. In that process, RunIfServer
// copies lines between the standard streams and the test, and no other code of the binary runs.
//
// NewHostileServer returns a server with a Misbehaviour: for example, it hangs, floods its client, sends false tool
// definitions, or shows forms that ask for passwords. A program that must withstand such servers can be tested with
// each of Misbehaviours. The size of a misbehaviour limits how many processes, bytes or messages it uses. When the test
// ends, the server closes its connections. Its processes then exit; a Stubborn process exits after ten minutes at the
// latest.
package mcptest
