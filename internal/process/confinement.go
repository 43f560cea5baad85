package process

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
)

// confineCommand returns the argv for the program at *path. For a confined program, it sets *path to Drawbridge's own
// executable and spec.Env to the environment of the confined program. That executable confines itself and then executes
// the program. If the system does not support any confinement and the profile does not require it, the program starts
// unconfined.
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

// availableConfinement returns the confinement that the system supports. If this executable cannot be run again to set
// up the confinement, because main does not call RunIfReaper, the result supports none.
func availableConfinement() confine.Support {
	reach := confine.DetectSupport()
	if reach.MissingReason == "" && !canReap() {
		reach.MissingReason = "the program that Drawbridge is part of does not call gateway.RunReaperProcess first in main"
	}
	return reach
}

// cleanUp removes the temporary directory of a confined program.
func (p *Process) cleanUp() {
	if p.profile != nil {
		p.profile.RemoveTemp()
	}
}
