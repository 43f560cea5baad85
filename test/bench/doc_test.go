// Package bench measures what Drawbridge costs, each number beside a control measured in the same run: the same client
// on the same server without Drawbridge, a byte-level HTTP reverse proxy, and a plain proxy made of the official SDK's
// client and server.
//
// Rounds are interleaved and medians compared, since a busy machine moves all of them together: trust ratios, not
// digits. The code has the build tag "bench". "make bench" prints the table; "go test -tags bench -bench . ./bench"
// runs the same calls as Go benchmarks.
//
// Every process but the client is the test binary itself in another role, or drawbridge as it is shipped.
package bench
