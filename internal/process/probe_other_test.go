//go:build unix && !(linux && (amd64 || arm64))

package process_test

// playMemfdHost is for systems with the supervisor.
func playMemfdHost() int { return 1 }
