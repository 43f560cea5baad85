//go:build linux && amd64 && cgo

package main

import (
	"encoding/binary"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const pageBytes = 4096

// The parts of an entry of /proc/self/pagemap, see pagemap.txt of the kernel's documentation.
const (
	pagemapEntry   = 8
	pagemapFile    = 1 << 61
	pagemapPresent = 1 << 63
)

// maxGap is how many pages between two touched ones are treated as touched: a system call costs more than a few copies.
const maxGap = 8

// touchedPages are the pages of a memory that a script read and wrote, as ranges of bytes. Any script touches about the
// same pages. To fill them ahead costs much less than a page fault for each.
type touchedPages struct{ read, written []byteRange }

type byteRange struct{ from, to int }

// readTouchedPages returns the touched pages of a memory. It returns none if the kernel does not tell.
func readTouchedPages(memory []byte) (t touchedPages) {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return t
	}
	defer f.Close()
	entries := make([]byte, len(memory)/pageBytes*pagemapEntry)
	at := int64(uintptr(unsafe.Pointer(&memory[0]))) / pageBytes * pagemapEntry
	if n, err := unix.Pread(int(f.Fd()), entries, at); err != nil || n != len(entries) {
		return t
	}
	for i := range len(memory) / pageBytes {
		switch entry := binary.NativeEndian.Uint64(entries[i*pagemapEntry:]); {
		case entry&pagemapPresent == 0:
		case entry&pagemapFile != 0:
			t.read = appendPage(t.read, i)
		default:
			t.written = appendPage(t.written, i)
		}
	}
	return t
}

// appendPage adds a page to the last range, or begins another.
func appendPage(all []byteRange, page int) []byteRange {
	from, to := page*pageBytes, (page+1)*pageBytes
	if n := len(all); n > 0 && from-all[n-1].to <= maxGap*pageBytes {
		all[n-1].to = to
		return all
	}
	return append(all, byteRange{from, to})
}

// fill fills the pages of a new memory. A kernel that cannot do that fills each when it is touched.
func (t touchedPages) fill(memory []byte) {
	for _, r := range t.written {
		_ = unix.Madvise(memory[r.from:r.to], unix.MADV_POPULATE_WRITE)
	}
	for _, r := range t.read {
		_ = unix.Madvise(memory[r.from:r.to], unix.MADV_POPULATE_READ)
	}
}
