package doctor

import (
	"bytes"
	"errors"
	"os"
)

// Writable says why nothing can be kept in a directory: it is not to be written, or its disk is full. What is written to find
// that out is gone afterwards.
func Writable(dir string) error {
	f, err := os.CreateTemp(dir, ".drawbridge-doctor-*")
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Repeat([]byte{'.'}, 4096))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
