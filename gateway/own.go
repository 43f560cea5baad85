package gateway

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway/keep"
)

// own says which files are ours: what decides what is started and who may call what, and what is kept of it. Of a project's files
// they are those for servers alone: what else stands in other programs' settings tools may change, and a changed row waits for
// approval anyway.
func own(c Config, set config.Set, dir func(drawbridge.ServerID) string) keep.Own {
	lookup := c.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	o := keep.Own{Dir: dir}
	add := func(to *[]string, all ...string) {
		for _, one := range all {
			if abs, err := filepath.Abs(one); err == nil && one != "" {
				*to = append(*to, abs)
			}
		}
	}
	o.Home, _ = lookup("HOME")
	if o.Home == "" {
		o.Home, _ = lookup("USERPROFILE")
	}
	if file, err := config.UserFile(config.Options{Dir: c.Dir, LookupEnv: c.LookupEnv}); err == nil {
		add(&o.Paths, filepath.Dir(file))
	}
	if o.Home != "" {
		add(&o.Paths, filepath.Join(o.Home, ".drawbridge"))
	}
	for _, p := range config.Providers() {
		for _, file := range p.Project {
			if dir, base := path.Split(file); strings.Contains(base, "mcp") || dir == ".drawbridge/" {
				add(&o.Paths, filepath.Join(c.Dir, filepath.FromSlash(file)))
			}
		}
	}
	s := set.Settings
	add(&o.Paths, c.Paths...)
	add(&o.Paths, s.TokenFile, s.LockFile, s.Audit.KeyFile, s.OAuth.IntrospectionSecretFile)
	place, err := StoreLocation(c.Store, s, c.LookupEnv)
	if err == nil && isFile(place) {
		add(&o.Beginnings, place) // with its journal, the audit's spool and the hub's file
	}
	if usual, err := StoreLocation("", config.Settings{}, c.LookupEnv); err == nil {
		add(&o.Paths, filepath.Dir(usual))
	}
	if vault, err := VaultPlace(c.Store, s, c.LookupEnv); err == nil {
		add(&o.Paths, vault)
	}
	return o
}

// takeOwn has the guard of our own files know which these are now.
func (g *Gateway) takeOwn() {
	o := own(g.c, g.set, g.startsIn)
	o.Dirs = g.leadsFrom
	g.keep.Take(o)
}

// startsIn is the directory that a server's program starts in; empty for one that is reached by a URL.
func (g *Gateway) startsIn(id drawbridge.ServerID) string {
	if row := g.row(id); row != nil && row.URL == "" {
		return row.Cwd
	}
	return ""
}

// leadsFrom are the directories that relative paths of a server may start at; none of one that is reached by a URL.
func (g *Gateway) leadsFrom(id drawbridge.ServerID) []string {
	if row := g.row(id); row != nil && row.URL == "" {
		return g.warden.Dirs(id)
	}
	return nil
}
