package process

import "github.com/drawbridge-mcp/drawbridge/bridge/confine"

// Unmet says what this machine lacks for a cage that is required; nil where it lacks nothing, or nothing is required.
func Unmet(c *confine.Cage) error {
	if c == nil {
		return nil
	}
	return c.Unmet(available())
}
