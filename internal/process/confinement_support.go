package process

import (
	"github.com/drawbridge-mcp/drawbridge/internal/confine"
)

// UnmetConfinement returns what this machine lacks for a required confinement, or nil if it lacks nothing or none is
// required.
func UnmetConfinement(c *confine.Profile) error {
	if c == nil {
		return nil
	}
	return c.CheckSupport(availableConfinement())
}
