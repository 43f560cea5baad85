package process

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ReleaseProgramPages releases the memory of the program text and the constants, because most of their pages are needed
// only at the start. The kernel reads a page from the file again when it is used.
func ReleaseProgramPages() { ProgramPageReleaser()() }

// ProgramPageReleaser returns a function that does the work of ReleaseProgramPages. The function opens no file, so that
// a confined process can call it.
//
// A mapping with a modified page is skipped, because the content of that page is not in the file. Relocations that were
// made read-only later are an example. The kernel counts modified pages as anonymous.
func ProgramPageReleaser() (release func()) {
	ranges := programRanges()
	return func() {
		for _, r := range ranges {
			// The call is only advice, so its error is ignored.
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(r[0]), uintptr(r[1]-r[0]), syscall.MADV_DONTNEED)
		}
	}
}

// programRanges returns the addresses of the unmodified mappings of the program's file.
func programRanges() (ranges [][2]uint64) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil
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
			ranges = append(ranges, [2]uint64{begin, end})
		}
	}
	return ranges
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
