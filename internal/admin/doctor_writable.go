package admin

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
)

// CheckStoreWritable adds a problem if no file can be written in the store's directory. It skips a location that is not
// a file, such as a URL.
func (r *DoctorReport) CheckStoreWritable(location string) {
	if strings.Contains(location, ":") && !filepath.IsAbs(location) {
		return
	}
	if err := checkDirWritable(filepath.Dir(location)); err != nil {
		r.AddProblem(Finding{
			About: "the store", Source: location, Text: "nothing can be written beside it: " + err.Error(),
			Fix: "see that its directory can be written and the disk has room, or name another place with --store",
		})
	}
}

// CheckStoreCreatable checks whether a store that does not exist yet can be created. It adds a problem if no file can
// be written in the store's directory. Otherwise it adds a note that the first start creates the store. If the
// directory does not exist, the nearest existing parent is checked.
func (r *DoctorReport) CheckStoreCreatable(location string) {
	dir := filepath.Dir(location)
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	if err := checkDirWritable(dir); err != nil {
		r.AddProblem(Finding{
			About: "the store", Source: location, Text: "it cannot be created, so nothing can start: " + err.Error(),
			Fix: "make " + dir + " writable, or name another place with --store",
		})
		return
	}
	r.AddNote(Finding{About: "the store", Text: "there is none yet; the first start makes it", Source: location})
}

// CheckUnimported adds a problem if no server is configured, but other programs have servers that can be imported.
// found are the servers of other programs.
func (r *DoctorReport) CheckUnimported(set config.Configuration, found []config.ImportCandidate) {
	if len(set.Servers)+len(set.Shadowed) > 0 {
		return
	}
	var programs []string
	count := 0
	for _, c := range found {
		if c.Status != config.ImportNew {
			continue
		}
		count++
		if !slices.Contains(programs, c.ProviderTitle) {
			programs = append(programs, c.ProviderTitle)
		}
	}
	if count > 0 {
		r.AddProblem(Finding{About: "servers",
			Text: fmt.Sprintf("none is configured; other programs have %d: %s", count, strings.Join(programs, ", ")),
			Fix:  "drawbridge setup"})
	}
}

// checkDirWritable returns an error if no file can be written in a directory, for example because the disk is full. It
// writes a temporary file and removes it.
func checkDirWritable(dir string) error {
	f, err := os.CreateTemp(dir, ".drawbridge-doctor-*")
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Repeat([]byte{'.'}, 4096))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
