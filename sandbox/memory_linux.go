package sandbox

import (
	"encoding/binary"
	"errors"
	"os"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// An imageMemory is the linear memory of a worker's interpreters, one at a time. The image is mapped copy on write, with
// empty pages behind it. When a world has ended, the pages that it wrote are written again from the image. So the next
// world finds all pages mapped: a page fault costs more than the copy of a page.
type imageMemory struct {
	base []byte
	// image is the image, mapped a second time for reading.
	image []byte
	// used is the largest size that the world reached; limit is its limit, and 0 means all of base.
	used  int
	limit int64
	// pages tells which pages were written. It is opened before the process is confined. Without it, all pages are
	// dropped.
	pages   *os.File
	entries []byte
}

// pageBytes is the size of a page for which /proc/self/pagemap is read. On a kernel with larger pages the reads are too
// short, and all pages are dropped.
const pageBytes = 4096

var _ experimental.MemoryAllocator = (*imageMemory)(nil)

// openImage maps an image. size is the maximum size of the memory.
func openImage(path string, size int64) (*imageMemory, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 || info.Size() > size || info.Size()%pageBytes != 0 {
		return nil, errors.New("the image has a wrong size")
	}
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	if _, err := unix.MmapPtr(int(f.Fd()), 0, p, uintptr(info.Size()), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_FIXED); err != nil {
		return nil, err
	}
	image, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	m := &imageMemory{base: unsafe.Slice((*byte)(p), size), image: image, used: len(image),
		entries: make([]byte, len(image)/pageBytes*pagemapEntry)}
	m.pages, _ = os.Open("/proc/self/pagemap") // reset works without it
	return m, nil
}

// Allocate implements [experimental.MemoryAllocator].
func (m *imageMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements [experimental.LinearMemory]. It returns nil above the limit, so that memory.grow fails.
func (m *imageMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.base)) || m.limit > 0 && size > uint64(m.limit) {
		return nil
	}
	m.used = max(m.used, int(size))
	return m.base[:size:size]
}

// Free implements [experimental.LinearMemory].
func (m *imageMemory) Free() {}

// afterInstantiate does nothing: the image is in place.
func (m *imageMemory) afterInstantiate() {}

// The parts of an entry of /proc/self/pagemap, see pagemap.txt of the kernel's documentation: a page of a private
// mapping that was written is not a page of the file any more.
const (
	pagemapEntry   = 8
	pagemapFile    = 1 << 61
	pagemapSwapped = 1 << 62
	pagemapPresent = 1 << 63
)

// reset makes the memory that of a new world.
func (m *imageMemory) reset() {
	if m.used > len(m.image) {
		_ = unix.Madvise(m.base[len(m.image):m.used], unix.MADV_DONTNEED) // cannot fail for a mapping of our own
	}
	m.used, m.limit = len(m.image), 0
	if !m.readEntries() {
		_ = unix.Madvise(m.base[:len(m.image)], unix.MADV_DONTNEED)
		return
	}
	for i := range len(m.image) / pageBytes {
		entry := binary.NativeEndian.Uint64(m.entries[i*pagemapEntry:])
		if entry&(pagemapPresent|pagemapSwapped) == 0 || entry&pagemapFile != 0 && entry&pagemapSwapped == 0 {
			continue // never touched, or still a page of the file
		}
		copy(m.base[i*pageBytes:(i+1)*pageBytes], m.image[i*pageBytes:])
	}
}

// close releases the memory. No instance uses it any more.
func (m *imageMemory) close() {
	_ = unix.MunmapPtr(unsafe.Pointer(&m.base[0]), uintptr(len(m.base))) // cannot fail for mappings of our own
	_ = unix.Munmap(m.image)
	m.base, m.image = nil, nil
	if m.pages != nil {
		_ = m.pages.Close() // it was only read
	}
}

// readEntries reads the entries of the pages of the image.
func (m *imageMemory) readEntries() bool {
	if m.pages == nil {
		return false
	}
	at := int64(uintptr(unsafe.Pointer(&m.base[0]))) / pageBytes * pagemapEntry
	n, err := unix.Pread(int(m.pages.Fd()), m.entries, at)
	return err == nil && n == len(m.entries)
}

// mapFile returns the content of a file without copying it.
func mapFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
}

// releaseFile releases the memory of the content of a mapped file, which the kernel reads again when it is used.
func releaseFile(content []byte) { _ = unix.Madvise(content, unix.MADV_DONTNEED) }
