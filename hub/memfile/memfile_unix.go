//go:build unix && !linux

package memfile

import (
	"errors"
	"os"
)

// New makes a file without a name.
func New(name string) (*os.File, error) {
	f, err := os.CreateTemp("", name+"-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
