package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
)

// doSkill carries out a request about skills.
func (d *Deck) doSkill(_ context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	return drawbridge.Result{}, noMethod(call.Method)
}
