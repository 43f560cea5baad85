package hub

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseProgramPages releases the memory of program text and constants that only the start needed. The kernel reads
// pages back from the file when they are used. A mapping with a written page, such as relocations that are read-only
// since, is left alone: the kernel counts that page as anonymous, and its contents are not in the file.
func releaseProgramPages() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	var begin, end uint64 // of the mapping that the lines are about; 0 for one that is not read-only program
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line) // from-to, rights, offset, device, inode, path; or a name and its value
		switch {
		case len(fields) > 1 && !strings.HasSuffix(fields[0], ":"):
			begin, end = 0, 0
			if len(fields) == 6 && (fields[1] == "r-xp" || fields[1] == "r--p") && fields[5] == self {
				begin, end = parseRange(fields[0])
			}
		case begin > 0 && len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0":
			// advice
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(begin), uintptr(end-begin), syscall.MADV_DONTNEED)
		}
	}
}

// parseRange returns the addresses in "from-to"; zeros if it has none.
func parseRange(text string) (begin, end uint64) {
	from, to, _ := strings.Cut(text, "-")
	begin, errBegin := strconv.ParseUint(from, 16, 64)
	end, errEnd := strconv.ParseUint(to, 16, 64)
	if errBegin != nil || errEnd != nil {
		return 0, 0
	}
	return begin, end
}
