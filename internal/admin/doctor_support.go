package admin

import (
	"runtime"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// A SystemSupport describes the support for one operating system and architecture: whether it is tested, and which
// features are missing.
type SystemSupport struct {
	// System is the name of the system in the form of Go, such as "linux/amd64".
	System string `json:"system"`
	// Tested reports whether the tests run on this system before each change.
	Tested bool `json:"tested"`
	// Missing names the features that Drawbridge has on Linux and not on this system.
	Missing []string `json:"missing"`
	// Current reports whether this program runs on this system.
	Current bool `json:"current"`
}

// SupportedSystems returns the systems that Drawbridge is compiled for, tested systems first. If this program runs on
// another system, that system is the last element.
func SupportedSystems() []SystemSupport {
	others := []string{"confinement of servers", "the check that a process at the hub's socket is the user's own",
		"the memory of processes in drawbridge ps", "audit records through mapped memory: each record needs a system call"}
	windows := append(others[:len(others):len(others)],
		"the end of processes that a server started in its first instants, after a kill of Drawbridge",
		"a client's input and output in the hub: each message is relayed",
		"a second drawbridge serve --http beside a running hub", "the check of the permissions of private files")
	all := []SystemSupport{
		{System: "linux/amd64", Tested: true, Missing: []string{}},
		{System: "linux/arm64", Missing: []string{}},
		{System: "darwin/arm64", Missing: append(others[:len(others):len(others)],
			"the end of descendants that left a server's process group, after a kill of Drawbridge")},
		{System: "windows/amd64", Missing: windows},
	}
	here := runtime.GOOS + "/" + runtime.GOARCH
	for i := range all {
		if all[i].System == here {
			all[i].Current = true
			return all
		}
	}
	return append(all, SystemSupport{System: here, Current: true, Missing: []string{"not known: it is not compiled before a change either"}})
}

// DescribeScriptIsolation describes how this system isolates the scripts of run_python: the WebAssembly engine alone, or
// also the confinement of the processes in which they run.
func DescribeScriptIsolation() string {
	engine := sandbox.CurrentEngine()
	text := "scripts run in WebAssembly (" + engine.String() + ")"
	kinds := confine.WorkerConfinement()
	if len(kinds) == 0 {
		return text + "; this system does not confine their processes"
	}
	return text + ", in processes confined by " + strings.Join(kinds, ", ")
}

// CheckEngine adds a note if there is a reason not to use the engine of run_python.
func (r *DoctorReport) CheckEngine() {
	if engine := sandbox.CurrentEngine(); engine.Caution != "" {
		r.AddNote(Finding{About: "the engine of run_python, " + engine.String(), Text: engine.Caution})
	}
}
