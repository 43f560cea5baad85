//go:build unix && !linux

package hub

import (
	"errors"
	"os"
)

// newMemFile creates a temporary file and removes its name. After that, only this process and processes that receive
// the open file can use it.
func newMemFile(name string) (*os.File, error) {
	f, err := os.CreateTemp("", name+"-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
