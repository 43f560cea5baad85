package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// A HeldResult is the result of a call that was not sent to the caller, because rules of the shield matched in it. It
// is stored so that a person can read it.
type HeldResult struct {
	ID     string              `json:"id"`
	At     time.Time           `json:"at"`
	Caller string              `json:"caller"`
	Method string              `json:"method"`
	Server drawbridge.ServerID `json:"server"`
	Card   string              `json:"card"`
	// Rules are the names of the shield's rules that matched.
	Rules []string `json:"met"`
	// Result is the content of the result; it is empty in the list that HeldResults returns.
	Result json.RawMessage `json:"result,omitempty"`
}

func newHeldResult(r store.HeldResult) HeldResult {
	return HeldResult{r.ID, r.At, r.Principal, r.Method, r.Server, r.Card, r.Rules, r.Result}
}

// HeldResults returns the withheld results without their content.
func (r *Service) HeldResults(ctx context.Context) ([]HeldResult, error) {
	db, err := r.openStoreOfSettings(ctx, false)
	if err != nil || db == nil {
		return nil, err
	}
	kept, err := db.HeldResults(ctx)
	if err = closeStore(db, err); err != nil {
		return nil, err
	}
	var all []HeldResult
	for _, one := range kept {
		all = append(all, newHeldResult(one))
	}
	return all, nil
}

// HeldResult returns one withheld result with its content.
func (r *Service) HeldResult(ctx context.Context, id string) (HeldResult, error) {
	db, err := r.openStoreOfSettings(ctx, false)
	if err != nil {
		return HeldResult{}, err
	}
	if db == nil {
		return HeldResult{}, fmt.Errorf("no result %s is held back", safetext.Line(id))
	}
	kept, err := db.HeldResult(ctx, id)
	if err = closeStore(db, err); err != nil {
		return HeldResult{}, err
	}
	return newHeldResult(kept), nil
}
