package config

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// UpdateFile changes a configuration file. It calls change with the file's content, or nil for a missing file, and
// writes the content that change returns. Writers of the same file wait for each other, even in different processes, so
// no update is lost. A reader sees either the complete old file or the complete new file, even after a crash.
//
// If the path is a symbolic link, UpdateFile changes its target and keeps the link. A new file has mode 0600 and a new
// directory 0700; an existing file keeps its mode. The extension of the path determines the format: .toml, .yaml or
// .yml, otherwise JSON.
//
// If change returns an error, UpdateFile writes nothing and returns this error unchanged. Any other error is a
// *drawbridge.Fault. It reports that the old or the new content cannot be parsed, or that the file is not regular or is
// larger than MaxFile. It also reports that the file cannot be locked, read or written.
func UpdateFile(path string, change func([]byte) ([]byte, error)) error {
	format := configfile.FormatOf(path)
	return configfile.RewriteFile(path, func(before configfile.FileState) (configfile.FileState, error) {
		if len(before.Data) > MaxFile {
			return configfile.FileState{}, configfile.FileFault("read "+path, configfile.TooLargeError(MaxFile))
		}
		if err := configfile.CheckSyntax(format, before.Data); err != nil {
			return configfile.FileState{}, configfile.FileFault("read "+path, err)
		}
		data, err := change(before.Data)
		if err != nil {
			return configfile.FileState{}, err
		}
		if !before.Exists && len(data) == 0 {
			return before, nil
		}
		if err := configfile.CheckSyntax(format, data); err != nil {
			return configfile.FileState{}, configfile.FileFault("change "+path, err)
		}
		return configfile.FileState{Data: data, Exists: true}, nil
	})
}
