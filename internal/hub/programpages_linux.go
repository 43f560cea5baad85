package hub

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseProgramPages releases the memory of the program text and the constants, because most of their pages are needed
// only at the start. The kernel reads a page from the file again when it is used. A mapping with a modified page is
// skipped, because the content of that page is not in the file. Relocations that were made read-only later are an
// example. The kernel counts modified pages as anonymous.
func releaseProgramPages() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	var begin, end uint64 // addresses of the current mapping; 0 if it is not read-only program data
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line) // range, permissions, offset, device, inode, path; or name and value
		switch {
		case len(fields) > 1 && !strings.HasSuffix(fields[0], ":"):
			begin, end = 0, 0
			if len(fields) == 6 && (fields[1] == "r-xp" || fields[1] == "r--p") && fields[5] == self {
				begin, end = parseRange(fields[0])
			}
		case begin > 0 && len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0":
			// The call is only advice, so its error is ignored.
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(begin), uintptr(end-begin), syscall.MADV_DONTNEED)
		}
	}
}

// parseRange returns the addresses in a text "from-to"; zeros if the text is invalid.
func parseRange(text string) (begin, end uint64) {
	from, to, _ := strings.Cut(text, "-")
	begin, errBegin := strconv.ParseUint(from, 16, 64)
	end, errEnd := strconv.ParseUint(to, 16, 64)
	if errBegin != nil || errEnd != nil {
		return 0, 0
	}
	return begin, end
}
