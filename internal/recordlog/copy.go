package recordlog

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Files returns the spool files in a directory, both of running and of dead processes. The files are grouped by
// process, and sorted by age for each process. Size is the length of the complete frames in the file.
func Files(dir string) (all []File, err error) {
	names, err := spoolFiles(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		f := File{Name: name, Path: filepath.Join(dir, name)}
		if _, err := f.measureWhole(); errors.Is(err, fs.ErrNotExist) {
			continue // the file was removed: the store has its records
		} else if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// CopyFiles copies the complete frames of all spool files in dir into the new directory to. It also copies files to
// which a process still writes. An incomplete frame at the end of a file is not copied.
func CopyFiles(dir, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	files, err := Files(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := f.copyTo(filepath.Join(to, f.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (f File) copyTo(path string) error {
	from, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer from.Close()
	w, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.LimitReader(from, f.Size))
	return errors.Join(err, w.Close())
}
