package doctor

import "runtime"

// A SystemSupport is how far Drawbridge is tested on one system, and what it does not have there.
type SystemSupport struct {
	// System is in the form of Go: "linux/amd64".
	System string `json:"system"`
	// Tested reports that the tests run there before each change. Elsewhere it is only compiled.
	Tested bool `json:"tested"`
	// Missing names what Linux has and this system does not have.
	Missing []string `json:"missing"`
	// Current reports that this program runs there.
	Current bool `json:"current"`
}

// Support returns the systems that Drawbridge is compiled for, the tested ones first. A system that is not among them
// is added where this program runs on it.
func Support() []SystemSupport {
	others := []string{"confinement of servers", "the check that a process at the hub's socket is the user's own",
		"the memory of processes in drawbridge ps", "records of calls in mapped memory: each is a system call"}
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
