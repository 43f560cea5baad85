package doctor

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Kept looks whether anything can be kept in the store, where that is a file.
func (r *Report) Kept(location string) {
	if strings.Contains(location, ":") && !filepath.IsAbs(location) {
		return
	}
	if err := Writable(filepath.Dir(location)); err != nil {
		r.Problem(Finding{
			About: "the store", Source: location, Text: "nothing can be written beside it: " + err.Error(),
			Fix: "see that its directory can be written and the disk has room, or name another place with --store",
		})
	}
}

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
