// Package mcptest has MCP servers for tests: one that answers with the functions of a test, and one that misbehaves in
// a way that has a name.
//
// New makes a server of tools, prompts and resources. It speaks both generations of the protocol, and can be reached
// in both ways at once: Stdio gives the row of a server that is started as a process, HTTP that of one on the loopback
// interface. The functions run in the test itself, whichever way they are called, so that they may look at its
// variables, and Asked tells what the server was asked:
//
//	func TestMain(m *testing.M) {
//		gateway.Reap()
//		fakemcp.Main()
//		os.Exit(m.Run())
//	}
//
//	func TestMyAgent(t *testing.T) {
//		fake := fakemcp.New(t, fakemcp.Tool{Name: "time", Answer: fakemcp.Text("14:02")})
//		g, err := gateway.Open(t.Context(), gateway.Config{
//			Store:   gateway.Memory,
//			Servers: []config.Server{fake.Stdio("clock")},
//		})
//		…
//	}
//
// The process that Stdio starts is the test binary, executed again: Main has it carry lines between its standard
// streams and the test, and nothing else of it runs.
//
// NewHostile makes a server that does a Misdeed: it hangs, floods, lies about its tools or puts forms before people
// that ask for passwords. A program that is to stand such servers can be held against every one of Misdeeds. What a
// Misdeed takes (processes, memory, a flood) is bounded by its size, and ends with the test.
//
// A server is lenient: it checks nothing of what it is asked beyond what it needs for its answer.
package mcptest
