//go:build amd64 || arm64

package process

// DisableSupervisor has this process start programs as on a system that cannot run the supervisor.
func DisableSupervisor() {
	supervisors.mu.Lock()
	defer supervisors.mu.Unlock()
	supervisors.unusable = true
}

// CanSupervise reports whether this process starts programs under the supervisor.
func CanSupervise() bool { return canSupervise() }
