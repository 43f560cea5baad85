// Package peers tests Drawbridge against programs that other people wrote: the official conformance suite, the
// Inspector, and the reference servers, all from npm, with the official Go SDK's conformance server as upstream.
//
// The tests have the build tag "peers", since they need what "make peers/node_modules" installs. They reach nothing but
// loopback, take no fixed ports, and leave no process behind.
package peers
