//go:build !linux

package sandbox

import (
	"errors"
	"os"

	"github.com/tetratelabs/wazero/experimental"
)

// An imageMemory is the linear memory of a worker's interpreters, one at a time. Each world gets a copy of the image.
type imageMemory struct {
	base  []byte
	image []byte
	limit int64
	max   int64
}

var _ experimental.MemoryAllocator = (*imageMemory)(nil)

// openImage reads an image. size is the maximum size of the memory.
func openImage(path string, size int64) (*imageMemory, error) {
	image, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if int64(len(image)) > size {
		return nil, errors.New("the image has a wrong size")
	}
	return &imageMemory{image: image, max: size}, nil
}

// Allocate implements [experimental.MemoryAllocator].
func (m *imageMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements [experimental.LinearMemory]. It returns nil above the limit, so that memory.grow fails.
func (m *imageMemory) Reallocate(size uint64) []byte {
	if size > uint64(m.max) || m.limit > 0 && size > uint64(m.limit) {
		return nil
	}
	if more := int(size) - len(m.base); more > 0 {
		m.base = append(m.base, make([]byte, more)...)
	}
	return m.base[:size:size]
}

// Free implements [experimental.LinearMemory].
func (m *imageMemory) Free() {}

// afterInstantiate copies the image into the memory of a new instance.
func (m *imageMemory) afterInstantiate() { copy(m.base, m.image) }

// reset drops the memory of a world.
func (m *imageMemory) reset() { m.base, m.limit = nil, 0 }

// close drops the memory.
func (m *imageMemory) close() { m.base, m.image = nil, nil }

func mapFile(path string) ([]byte, error) { return os.ReadFile(path) }

func releaseFile([]byte) {}
