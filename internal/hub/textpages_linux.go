package hub

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseTextPages releases the memory of program text that only the start needed. The kernel reads pages back from the
// file when they are used; the text is never written, so nothing is lost.
func releaseTextPages() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line) // from-to, rights, offset, device, inode, path
		if len(fields) < 6 || fields[1] != "r-xp" || fields[5] != self {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		begin, errBegin := strconv.ParseUint(from, 16, 64)
		end, errEnd := strconv.ParseUint(to, 16, 64)
		if errBegin == nil && errEnd == nil {
			// advice
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(begin), uintptr(end-begin), syscall.MADV_DONTNEED)
		}
	}
}
