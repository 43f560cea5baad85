package config

import (
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// AddonDirs returns the directories of addons: the person's own, beside drawbridge.toml, and that of the working
// directory, whose addons need approval. One is empty if it is unknown, and the second if it is the home directory's. Of
// o it uses Dir and what names the base directories.
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
