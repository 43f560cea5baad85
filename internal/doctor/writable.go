package doctor

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// CheckStoreWritable looks whether anything can be kept in the store, where that is a file.
func (r *Report) CheckStoreWritable(location string) {
	if strings.Contains(location, ":") && !filepath.IsAbs(location) {
		return
	}
	if err := CheckDirWritable(filepath.Dir(location)); err != nil {
		r.AddProblem(Finding{
			About: "the store", Source: location, Text: "nothing can be written beside it: " + err.Error(),
			Fix: "see that its directory can be written and the disk has room, or name another place with --store",
		})
	}
}

// CheckDirWritable says why nothing can be kept in a directory: it is not to be written, or its disk is full. What is
// written to find that out is gone afterwards.
func CheckDirWritable(dir string) error {
	f, err := os.CreateTemp(dir, ".drawbridge-doctor-*")
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Repeat([]byte{'.'}, 4096))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
