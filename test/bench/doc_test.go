// Package bench measures what Drawbridge costs, each number beside a control measured in the same run: the same client
// on the same server without Drawbridge, a byte-level HTTP reverse proxy, relays on pipes, and a plain proxy made of
// the official SDK's client and server. docs/benchmarks.md says how to read the table.
//
// Rounds are interleaved and medians compared, since a busy machine moves all of them together: trust ratios, processor
// time and system calls, not microseconds. The code has the build tag "bench". "make bench" prints the table; "go test
// -tags bench -bench . ./test/bench" runs the same calls as Go benchmarks.
//
// Every process but the client is the test binary itself in another role, drawbridge as it is shipped, or a server in a
// small binary of its own.
package bench
