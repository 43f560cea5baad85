package config

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// UpdateFile changes a file of the configuration: change is given what the file holds, nil where there is none, and
// says what it shall hold. Writers of one file, also of different processes, take turns, and none loses what another
// wrote. A reader sees the old file or the new one, whole; so does the next start after a crash.
//
// A link is followed, and stays. A new file has mode 0600 and a directory that is made for it 0700; a file that exists
// keeps its mode. The file's name says its format: .toml, .yaml or .yml, else JSON.
//
// An error of change is returned as it is, and nothing is written. Any other is a *drawbridge.Fault: the file does not
// parse, or would not after the change; it is no regular file, or larger than MaxFile; it cannot be locked, read or
// written.
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
