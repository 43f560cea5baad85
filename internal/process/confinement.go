package process

import (
	"encoding/json"
	"os/exec"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
)

// prepareConfinement makes the directories of a confined program and sets spec.Env to its environment. If the system
// does not support any confinement and the profile does not require it, the program starts unconfined.
func (p *Process) prepareConfinement(spec *Spec) error {
	if spec.Confinement == nil {
		return nil
	}
	c, reach := *spec.Confinement, availableConfinement()
	if err := c.CheckSupport(reach); err != nil {
		return err
	}
	words, any := c.Describe(reach)
	if p.confinement = words; !any {
		return nil
	}
	if err := c.Prepare(); err != nil {
		return err
	}
	p.profile = &c
	spec.Env = c.Environ(spec.Env)
	return nil
}

// confineByReexec changes cmd so that it starts Drawbridge's own executable, which confines itself and then executes the
// program of cmd.
func confineByReexec(cmd *exec.Cmd, c *confine.Profile) error {
	said, err := json.Marshal(c)
	if err != nil {
		return err
	}
	self, err := selfPath()
	if err != nil {
		return err
	}
	cmd.Args = append([]string{confine.ReexecName, string(said), cmd.Path}, cmd.Args...)
	cmd.Path = self
	return nil
}

// availableConfinement returns the confinement that the system supports. If neither the supervisor nor this executable
// can be run to set up the confinement, the result supports none.
func availableConfinement() confine.Support {
	reach := confine.DetectSupport()
	if reach.MissingReason == "" && !canReap() && !canSupervise() {
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
