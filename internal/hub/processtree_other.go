//go:build !linux

package hub

// A processTree is the processes of the machine, of which nothing is known here.
type processTree struct{}

// readProcessTree looks at nothing.
func readProcessTree() processTree { return processTree{} }

// residentBytes is not known.
func (processTree) residentBytes(int) int64 { return 0 }

// treeResidentBytes returns 0, because this system does not report the memory of a process tree.
func (processTree) treeResidentBytes(int) int64 { return 0 }
