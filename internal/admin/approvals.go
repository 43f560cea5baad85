package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// An Approvals reads and answers the queue of calls that wait for a person's approval. It must be closed after use.
type Approvals struct {
	db       *store.DB // nil if there is no store
	recorder gateway.AdminRecorder
	// by is who answers, for the audit; empty means this user, with the command "drawbridge ask".
	by string
}

// OpenApprovals opens the store with the queue of waiting calls. If there is no store yet, it creates the store if
// create is set; otherwise the queue is empty.
func (r *Service) OpenApprovals(ctx context.Context, create bool) (*Approvals, error) {
	db, err := r.openStoreOfSettings(ctx, create)
	if err != nil {
		return nil, err
	}
	return &Approvals{db: db, recorder: r.o.AdminRecorder}, nil
}

// Close closes the store.
func (a *Approvals) Close() error { return closeStore(a.db, nil) }

// A PendingCall is a call that waits for a person's approval. If there is no answer before Until, the call is refused.
type PendingCall struct {
	ID      string                  `json:"id"`
	Created time.Time               `json:"created"`
	Until   time.Time               `json:"until"`
	Call    gateway.ApprovalDetails `json:"call"`
	// Damage is set if the stored details of the call cannot be read; then Call is empty.
	Damage error `json:"-"`

	stored store.PendingApproval
}

func newPendingCall(a store.PendingApproval) PendingCall {
	p := PendingCall{ID: a.ID, Created: a.Created, Until: a.Until, stored: a}
	if err := json.Unmarshal(a.Shown, &p.Call); err != nil {
		p.Damage = fmt.Errorf("read the call %s: what the store has of it is damaged", a.ID)
	}
	return p
}

// Pending returns the calls that wait for an answer.
func (a *Approvals) Pending(ctx context.Context) (all []PendingCall, err error) {
	if a.db == nil {
		return nil, nil
	}
	stored, err := a.db.PendingApprovals(ctx)
	for _, one := range stored {
		all = append(all, newPendingCall(one))
	}
	return all, err
}

// Find returns the waiting call with this ID. If no call with this ID is waiting, the error names the command that
// lists the waiting calls. If the stored details of the call are damaged, the error is PendingCall.Damage.
func (a *Approvals) Find(ctx context.Context, id string) (PendingCall, error) {
	all, err := a.Pending(ctx)
	if err != nil {
		return PendingCall{}, err
	}
	for _, p := range all {
		if p.ID == id {
			return p, p.Damage
		}
	}
	return PendingCall{},
		fmt.Errorf("no call %s is waiting: it was answered or has ended (drawbridge ask lists waiting calls)",
			shortID(id))
}

// shortID returns an ID that a person entered, on one line and truncated to 20 characters.
func shortID(id string) string {
	return safetext.Truncate(safetext.Exact(id), 20, safetext.Runes, "…")
}

// Allow approves a waiting call, so that it continues, and stores the grants that s describes. The answer is recorded in
// the audit.
func (a *Approvals) Allow(ctx context.Context, p PendingCall, s GrantScope) error {
	grants, lasts, err := s.newGrants(p)
	if err != nil {
		return err
	}
	return a.answer(ctx, p, store.AnswerAllowed, grants, lasts)
}

// Deny refuses a waiting call. The answer is recorded in the audit.
func (a *Approvals) Deny(ctx context.Context, p PendingCall) error {
	return a.answer(ctx, p, store.AnswerDenied, nil, 0)
}

func (a *Approvals) answer(ctx context.Context, p PendingCall, answer store.ApprovalAnswer, grants []store.Grant,
	lasts time.Duration) error {
	act := gateway.AdminAction{Command: "ask " + string(answer), Server: drawbridge.ServerID(p.Call.Server),
		Subject: p.Call.Card, Detail: p.ID}
	switch {
	case len(grants) == 0:
	case lasts == 0:
		act.Detail += ", from now on"
	default:
		act.Detail += ", for " + lasts.String()
	}
	if len(grants) > 0 && grants[0].Max > 0 {
		act.Detail += fmt.Sprintf(", up to %d calls of each tool", grants[0].Max)
	}
	by := gateway.CurrentUser() + ", drawbridge " + act.Command
	if a.by != "" {
		by = a.by
		act.Detail += ", " + by
	}
	return a.recorder.Run(act, func() error {
		return a.db.AnswerPendingApproval(ctx, p.ID, answer, by, grants, lasts)
	})
}

// A Grant is a stored permission for calls that would otherwise wait for an approval; see GrantScope.
type Grant struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	// Until is the end of the grant; zero if the grant does not expire.
	Until time.Time `json:"until,omitzero"`
	// Session reports whether the grant is limited to the session of the caller.
	Session bool `json:"session"`
	// AnyArguments reports whether the grant is for any arguments. Call shows the arguments of the call for which the
	// grant was made.
	AnyArguments bool `json:"anyArguments"`
	Uses         int  `json:"uses"`
	// Max is the maximum number of calls; 0 means that there is none. A grant with a maximum is for calls of a script,
	// and the only element of Call.Effects describes them.
	Max  int                     `json:"maximum,omitempty"`
	Call gateway.ApprovalDetails `json:"call"`
}

// Grants returns the grants that are still valid.
func (a *Approvals) Grants(ctx context.Context) (all []Grant, err error) {
	if a.db == nil {
		return nil, nil
	}
	kept, err := a.db.Grants(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range kept {
		one, err := newGrant(g)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func newGrant(g store.Grant) (Grant, error) {
	out := Grant{ID: g.ID, Created: g.Created, Until: g.Until, Session: g.Session != "", AnyArguments: g.ForCard,
		Uses: g.Uses, Max: g.Max}
	err := json.Unmarshal(g.Shown, &out.Call)
	if err != nil || g.Max > 0 && (len(out.Call.Effects) != 1 || out.Call.Effects[0].Pattern == nil) {
		return Grant{}, fmt.Errorf("read the grant %s: what the store has of it is damaged", g.ID)
	}
	return out, nil
}

// Revoke deletes a grant. If id is the ID of an approval request, Revoke deletes all grants that the answer to the request
// created. It returns an error if no such grant exists.
func (a *Approvals) Revoke(ctx context.Context, id string) error {
	unknown := fmt.Errorf("grant %s not found (drawbridge ask grants lists them)", shortID(id))
	if a.db == nil {
		return unknown
	}
	return a.recorder.Run(gateway.AdminAction{Command: "ask revoke", Detail: id}, func() error {
		revoked, err := a.db.RevokeGrant(ctx, id)
		if err == nil && !revoked {
			return unknown
		}
		return err
	})
}

// AnswerApproval answers the waiting call with this ID. If allow is set, it approves the call and stores the grant that
// s describes. Otherwise it refuses the call. by says in the audit who answered, and where; empty means this user, with
// the command "drawbridge ask".
func (r *Service) AnswerApproval(ctx context.Context, id string, allow bool, s GrantScope, by string) error {
	queue, err := r.OpenApprovals(ctx, false)
	if err != nil {
		return err
	}
	queue.by = by
	p, err := queue.Find(ctx, id)
	switch {
	case err != nil:
	case allow:
		err = queue.Allow(ctx, p, s)
	default:
		err = queue.Deny(ctx, p)
	}
	return errors.Join(err, queue.Close())
}
