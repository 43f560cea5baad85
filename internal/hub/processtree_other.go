//go:build !linux

package hub

// A processTree is empty, because reading the processes is not supported on this system.
type processTree struct{}

// readProcessTree returns an empty processTree.
func readProcessTree() processTree { return processTree{} }

// residentBytes returns 0, because the memory of a process is unknown on this system.
func (processTree) residentBytes(int) int64 { return 0 }

// treeResidentBytes returns 0, because this system does not report the memory of a process tree.
func (processTree) treeResidentBytes(int) int64 { return 0 }
