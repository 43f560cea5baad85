package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/config/dialect"
	"github.com/drawbridge-mcp/drawbridge/config/disk"
	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// A source is one file to read.
type source struct {
	path     string
	kind     OriginKind
	provider string
	shape    *dialect.Shape
	// dir is the directory that was searched, where one was.
	dir string
	// named says that a person named the very file: what is wrong with it is an error.
	named bool
	// rows and settings say what is taken from the file.
	rows, settings bool
	// root is what open found in the file, err why it found nothing.
	root doc.Node
	err  error
}

// Named gives what o.Paths names as absolute paths, a file or a directory each, for a process that runs elsewhere. A
// comma in one stays: there is a file of that name.
func (o Options) Named() ([]string, error) {
	l, err := newLoader(o)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, path := range disk.Split(l.Project, o.Paths) {
		paths = append(paths, l.abs(path))
	}
	return paths, nil
}

// once leaves out a file that was listed before under any name. One that is a project's and the person's own is the
// person's own.
func once(all []source) []source {
	var kept []source
	var infos []fs.FileInfo
	for _, src := range all {
		info, err := os.Stat(src.path)
		if err != nil {
			info = nil
		}
		i := slices.IndexFunc(kept, func(k source) bool { return k.path == src.path })
		if i < 0 && info != nil {
			i = slices.IndexFunc(infos, func(k fs.FileInfo) bool { return k != nil && os.SameFile(k, info) })
		}
		if i < 0 {
			kept, infos = append(kept, src), append(infos, info)
			continue
		}
		src.named = kept[i].named || src.named
		src.rows = kept[i].rows || src.rows
		src.settings = kept[i].settings || src.settings
		if kept[i].kind == Project && src.kind != Project { // the project's name for it does not say what is in it
			kept[i] = src
		}
		kept[i].named, kept[i].rows, kept[i].settings = src.named, src.rows, src.settings
	}
	return kept
}

// read gives the file's bytes. Of what is no regular file, only one that a person named is read: a pipe may block.
func (src source) read() ([]byte, error) {
	info, err := os.Stat(src.path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir() || !src.named && !info.Mode().IsRegular():
		return nil, errors.New("this is not a regular file")
	}
	f, err := os.Open(src.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	most := MaxFile
	if src.kind == User && !src.shape.Native {
		most = maxTheirs
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if len(data) > most {
		return nil, fmt.Errorf("the file is larger than %d MiB", most>>20)
	}
	return data, err
}
