package config

import (
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// AddonDirs returns the two directories in which Drawbridge looks for addons. own is the directory "addons" beside the
// user-level drawbridge.toml; its addons need no approval. project is the directory ".drawbridge/addons" in the working
// directory; its addons need an approval.
//
// own is empty if the configuration directory is unknown. project is empty if the working directory is the home
// directory. AddonDirs uses only the fields of o that locate directories: Dir, Home, XDGConfig, AppData and LookupEnv.
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
