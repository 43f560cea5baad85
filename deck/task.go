package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
)

// doTask carries out a request about a task.
func (d *Deck) doTask(_ context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	return drawbridge.Result{}, noMethod(call.Method)
}
