package process

import (
	"github.com/drawbridge-mcp/drawbridge/internal/confine"
)

// UnmetConfinement says what this machine lacks for a cage that is required; nil where it lacks nothing, or nothing is
// required.
func UnmetConfinement(c *confine.Profile) error {
	if c == nil {
		return nil
	}
	return c.CheckSupport(availableConfinement())
}
