package process

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
)

// confineCommand gives the whole argv of the program at path. For one with a cage it is that of our own executable,
// which confines itself and then becomes the program; path and the environment are those of that. Where nothing of the
// cage can be had, and it is not required, the program is started as it is.
func (p *Process) confineCommand(path *string, spec *Spec) (argv []string, err error) {
	argv = append([]string{spec.Command}, spec.Args...)
	if spec.Confinement == nil {
		return argv, nil
	}
	c, reach := *spec.Confinement, availableConfinement()
	if err := c.CheckSupport(reach); err != nil {
		return nil, err
	}
	words, any := c.Describe(reach)
	if p.confinement = words; !any {
		return argv, nil
	}
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	p.profile = &c
	said, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	self, err := selfPath()
	if err != nil {
		return nil, err
	}
	argv = append([]string{confine.ReexecName, string(said), *path}, argv...)
	*path, spec.Env = self, c.Environ(spec.Env)
	return argv, nil
}

// availableConfinement is what the system offers, as far as this program can be run again to make use of it.
func availableConfinement() confine.Support {
	reach := confine.DetectSupport()
	if reach.MissingReason == "" && !canReap() {
		reach.MissingReason = "the program that Drawbridge is part of does not call bridge.Reap, first thing in main"
	}
	return reach
}

// cleanUp takes away what was the program's for the time it ran.
func (p *Process) cleanUp() {
	if p.profile != nil {
		p.profile.RemoveTemp()
	}
}
