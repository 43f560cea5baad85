package config

import (
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// AddonDirs returns the two directories that contain addons. own is the directory beside drawbridge.toml. project is in
// the working directory, and its addons need approval. own is empty if the configuration directory is unknown; project
// is empty if the working directory is the home directory. AddonDirs uses o.Dir and the fields that locate the base
// directories, and ignores the other fields of o.
func AddonDirs(o Options) (own, project string, err error) {
	l, err := newLoader(o)
	if err != nil {
		return "", "", err
	}
	if l.Config != "" {
		own = filepath.Join(l.Config, filepath.Dir(filepath.FromSlash(clientconfig.SettingsPath)), "addons")
	}
	if !configfile.SameFile(l.Project, l.Home) {
		project = filepath.Join(l.Project, ".drawbridge", "addons")
	}
	return own, project, nil
}
