//go:build !linux || (!amd64 && !arm64)

package confine

// RestrictWorker does nothing on this system: a worker has the rights of its user, and WebAssembly alone holds its
// scripts.
func RestrictWorker() error { return nil }

// WorkerConfinement returns no kinds of confinement.
func WorkerConfinement() (kinds []string) { return nil }
