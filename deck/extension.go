package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
)

// doExtension carries out a request of an extension that only the caller and a server know.
func (d *Deck) doExtension(_ context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	return drawbridge.Result{}, noMethod(call.Method)
}
