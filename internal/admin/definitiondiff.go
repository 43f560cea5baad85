package admin

import (
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// A DefinitionDiff describes the changes between two definitions of the same tool, and their risk.
type DefinitionDiff struct {
	// Kind describes the change with the highest risk. It is "unreadable" if the definitions cannot be compared.
	Kind string `json:"kind"`
	shield.Comparison
}

// DiffDefinitions compares two different definitions of a tool. If they cannot be compared, or the shield finds no
// change, the result has the highest risk and the kind "unreadable".
func DiffDefinitions(s *shield.Shield, before, after json.RawMessage) DefinitionDiff {
	c, err := s.CompareDefinitions(before, after)
	switch worst := c.WorstChange(); {
	case err != nil:
		return DefinitionDiff{"unreadable", shield.Comparison{Risk: shield.RiskHigh, NeedsApproval: true,
			Changes: []shield.DefinitionChange{}, Reasons: []shield.Finding{}}}
	case worst == nil: // parsers may disagree about whether the definitions are equal
		c.Risk, c.NeedsApproval = shield.RiskHigh, true
		return DefinitionDiff{"unreadable", c}
	default:
		return DefinitionDiff{worst.Description(), c}
	}
}

// String returns the kind and the risk.
func (d DefinitionDiff) String() string { return fmt.Sprintf("%s (%s)", d.Kind, d.Risk) }
