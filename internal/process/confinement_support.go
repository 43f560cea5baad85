package process

import (
	"github.com/drawbridge-mcp/drawbridge/internal/confine"
)

// UnmetConfinement returns an error if c requires confinement that this machine does not support. It returns nil if c
// is nil or does not require confinement.
func UnmetConfinement(c *confine.Profile) error {
	if c == nil {
		return nil
	}
	return c.CheckSupport(availableConfinement())
}
