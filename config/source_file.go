package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A sourceFile is a configuration file to read.
type sourceFile struct {
	path     string
	kind     OriginKind
	provider string
	dialect  *clientconfig.Dialect
	// dir is the directory in which Load found the file; empty if a person named the file itself.
	dir string
	// namedByPerson is set if a person named the file itself: problems in the file are errors, and not warnings.
	namedByPerson bool
	// readRows and readSettings are set if the rows or the settings of the file are read.
	readRows, readSettings bool
	// root is the parsed content of the file. err is the error if the file could not be read or parsed.
	root configfile.Node
	err  error
}

// NamedPaths returns o.Paths as a list of absolute paths, for use in a process with another working directory. Values
// are split at commas, except a value that is the name of an existing file.
func (o Options) NamedPaths() ([]string, error) {
	l, err := newLoader(o)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, path := range configfile.SplitPaths(l.Project, o.Paths) {
		paths = append(paths, l.absolutePath(path))
	}
	return paths, nil
}

// uniqueSources removes duplicates: two paths of the same file become one source. If the file is both a project's file
// and the person's own file, it is treated as the person's own.
func uniqueSources(all []sourceFile) []sourceFile {
	var kept []sourceFile
	var infos []fs.FileInfo
	for _, src := range all {
		info, err := os.Stat(src.path)
		if err != nil {
			info = nil
		}
		i := slices.IndexFunc(kept, func(k sourceFile) bool { return k.path == src.path })
		if i < 0 && info != nil {
			i = slices.IndexFunc(infos, func(k fs.FileInfo) bool { return k != nil && os.SameFile(k, info) })
		}
		if i < 0 {
			kept, infos = append(kept, src), append(infos, info)
			continue
		}
		src.namedByPerson = kept[i].namedByPerson || src.namedByPerson
		src.readRows = kept[i].readRows || src.readRows
		src.readSettings = kept[i].readSettings || src.readSettings
		// The file's format depends on its path among the person's own files, so src replaces the project's source.
		if kept[i].kind == OriginProject && src.kind != OriginProject {
			kept[i] = src
		}
		kept[i].namedByPerson, kept[i].readRows, kept[i].readSettings = src.namedByPerson, src.readRows,
			src.readSettings
	}
	return kept
}

// readBytes returns the file's content. A file that is not regular is read only if a person named it, because reading a
// pipe may block.
func (src sourceFile) readBytes() ([]byte, error) {
	info, err := os.Stat(src.path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir() || !src.namedByPerson && !info.Mode().IsRegular():
		return nil, errors.New("this is not a regular file")
	}
	f, err := os.Open(src.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	most := MaxFile
	if src.kind == OriginUser && !src.dialect.Native {
		most = maxForeignFile
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if len(data) > most {
		return nil, fmt.Errorf("the file is larger than %d MiB", most>>20)
	}
	return data, err
}
