package gateway

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
)

// collectOwnFiles returns the files that Drawbridge protects from tools: configuration, approvals, credentials and
// records. A project's files are protected only if they list MCP servers or are in ".drawbridge". Tools may change the
// other settings files of a project, because a changed server in them is not started before a person approves it.
func collectOwnFiles(c Config, set config.Configuration) guards.OwnFiles {
	o := guards.OwnFiles{Home: homeDir(c.LookupEnv), Dir: c.Dir}
	add := func(to *[]string, all ...string) {
		for _, one := range all {
			if abs, err := filepath.Abs(one); err == nil && one != "" {
				*to = append(*to, abs)
			}
		}
	}
	if file, err := config.UserFile(config.Options{Dir: c.Dir, LookupEnv: c.LookupEnv}); err == nil {
		add(&o.Paths, filepath.Dir(file))
	}
	if o.Home != "" {
		add(&o.Paths, filepath.Join(o.Home, ".drawbridge"))
	}
	for _, p := range config.Providers() {
		for _, file := range p.ProjectFiles {
			if dir, base := path.Split(file); strings.Contains(base, "mcp") || dir == ".drawbridge/" {
				add(&o.Paths, filepath.Join(c.Dir, filepath.FromSlash(file)))
			}
		}
	}
	s := set.Settings
	add(&o.Paths, c.Paths...)
	add(&o.Paths, s.TokenFile, s.LockFile, s.Audit.KeyFile, s.OAuth.IntrospectionSecretFile, s.AskWebhookSecretFile)
	place, err := StoreLocation(c.Store, s, c.LookupEnv)
	if err == nil && isFileStore(place) {
		add(&o.Prefixes, place) // includes the journal of the database, the spool of the audit and the file of the hub
	}
	if place, err := WorkspaceLocation(s, c.LookupEnv); err == nil && isFileStore(place) {
		add(&o.Prefixes, place)
	}
	if usual, err := StoreLocation("", config.Settings{}, c.LookupEnv); err == nil {
		add(&o.Paths, filepath.Dir(usual))
	}
	if vault, err := vaultDir(c.Store, s, c.LookupEnv); err == nil {
		add(&o.Paths, vault)
		add(&o.Prefixes, vault+asideSuffix)
	}
	return o
}

// homeDir returns the home directory of the user; empty if it is unknown. lookup looks up environment variables; nil
// means os.LookupEnv.
func homeDir(lookup func(string) (string, bool)) string {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	home, _ := lookup("HOME")
	if home == "" {
		home, _ = lookup("USERPROFILE")
	}
	return home
}

// updateOwnFiles updates the file guard with the files that the current configuration protects.
func (g *Gateway) updateOwnFiles() {
	o := collectOwnFiles(g.config, g.set)
	o.WorkingDir, o.RelativeDirs = g.serverTable.WorkingDir, g.serverTable.RelativeDirs
	g.fileGuard.Update(o)
}
