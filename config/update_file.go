package config

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// UpdateFile changes a file of the configuration. change gets the file's content, nil for a missing file, and returns
// the new content. Writers of one file, also in different processes, wait for each other, so no update is lost. A reader sees
// the old file or the new one, complete; so does the next start after a crash.
//
// A link is followed, and stays. A new file has mode 0600 and a new directory 0700; an existing file keeps its mode.
// The file's extension determines its format: .toml, .yaml or .yml, else JSON.
//
// An error of change is returned unchanged, and nothing is written. Any other error is a *drawbridge.Fault: the file
// does not parse, or would not after the change; it is not a regular file, or larger than MaxFile; it cannot be locked,
// read or written.
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
