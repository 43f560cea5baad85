package admin

import (
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// A DefinitionDiff is the difference between two definitions of one tool.
type DefinitionDiff struct {
	// Kind is that of the riskiest change, see shield.Change.Kind; "unreadable" if they cannot be compared.
	Kind string `json:"kind"`
	shield.Comparison
}

// DiffDefinitions compares two definitions. Definitions that cannot be compared have the highest risk.
func DiffDefinitions(s *shield.Shield, before, after json.RawMessage) DefinitionDiff {
	c, err := s.CompareDefinitions(before, after)
	switch worst := c.WorstChange(); {
	case err != nil:
		return DefinitionDiff{"unreadable", shield.Comparison{Risk: shield.RiskHigh, NeedsApproval: true,
			Changes: []shield.DefinitionChange{}, Reasons: []shield.Finding{}}}
	case worst == nil: // the same to one reader, and not to another
		c.Risk, c.NeedsApproval = shield.RiskHigh, true
		return DefinitionDiff{"unreadable", c}
	default:
		return DefinitionDiff{worst.Description(), c}
	}
}

// String returns the kind and the risk.
func (d DefinitionDiff) String() string { return fmt.Sprintf("%s (%s)", d.Kind, d.Risk) }
