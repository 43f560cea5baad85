//go:build unix && !(linux && (amd64 || arm64))

package process

// DisableSupervisor does nothing: there is no supervisor on this system.
func DisableSupervisor() {}

// CanSupervise returns false.
func CanSupervise() bool { return false }
