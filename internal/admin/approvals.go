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
}

// OpenApprovals opens the store with the queue of waiting calls. If there is no store yet, it creates the store if
// create is set; otherwise the queue is empty.
func (r *Service) OpenApprovals(ctx context.Context, create bool) (*Approvals, error) {
	db, err := r.openStoreOfSettings(ctx, create)
	if err != nil {
		return nil, err
	}
	return &Approvals{db, r.o.AdminRecorder}, nil
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

// A GrantScope describes the grant that a person adds when approving a waiting call. A grant permits later calls
// without a question. The zero value adds no grant and permits only the waiting call.
type GrantScope struct {
	// Duration is how long the grant is valid; in JSON it is in nanoseconds. A negative value is invalid.
	Duration time.Duration `json:"duration,omitempty"`
	// Session limits the grant to the caller's session. If Duration is 0, such a grant ends after 24 hours at the
	// latest.
	Session bool `json:"session,omitempty"`
	// AnyArguments permits calls of the tool with any arguments, not only with the same arguments. It needs Duration or
	// Session.
	AnyArguments bool `json:"any_arguments,omitempty"`
	// Always permits calls with the same arguments until the grant is revoked. It cannot be combined with other fields.
	Always bool `json:"always,omitempty"`
}

// maxSessionGrant is how long a grant for a session is valid if the person gave no duration.
const maxSessionGrant = 24 * time.Hour

// Validate returns a UserError if fields cannot be combined or Duration is negative.
func (s GrantScope) Validate() error {
	switch {
	case s.Duration < 0:
		return UserError("--for wants a time such as 10m or 2h")
	case s.Always && (s.Duration > 0 || s.Session || s.AnyArguments):
		return UserError("--always-this is for this very call; leave the other flags out")
	case s.AnyArguments && s.Duration == 0 && !s.Session:
		return UserError("--any-arguments needs an end: --for TIME or --session")
	}
	return nil
}

// newGrant returns the grant to store when the call p is approved, and its duration; 0 means no end. The grant is nil
// if the scope permits only the call.
func (s GrantScope) newGrant(p PendingCall) (*store.Grant, time.Duration, error) {
	if err := s.Validate(); err != nil {
		return nil, 0, err
	}
	switch {
	case s.Session && p.stored.Session == "":
		return nil, 0, errors.New("the caller has no session (--for TIME grants it for a time)")
	case !s.Always && !s.Session && s.Duration == 0:
		return nil, 0, nil
	}
	shown, err := p.Call.RedactedJSON()
	if err != nil {
		return nil, 0, err
	}
	g := &store.Grant{Subject: p.stored.Call, Shown: shown}
	if s.AnyArguments {
		g.Subject, g.ForCard = p.stored.Card, true
	}
	if s.Session {
		g.Session = p.stored.Session
		if s.Duration == 0 {
			s.Duration = maxSessionGrant
		}
	}
	return g, s.Duration, nil
}

// Allow approves a waiting call, so that it continues, and stores the grant that s describes. The answer is recorded in
// the audit.
func (a *Approvals) Allow(ctx context.Context, p PendingCall, s GrantScope) error {
	grant, lasts, err := s.newGrant(p)
	if err != nil {
		return err
	}
	return a.answer(ctx, p, store.AnswerAllowed, grant, lasts)
}

// Deny refuses a waiting call. The answer is recorded in the audit.
func (a *Approvals) Deny(ctx context.Context, p PendingCall) error {
	return a.answer(ctx, p, store.AnswerDenied, nil, 0)
}

func (a *Approvals) answer(ctx context.Context, p PendingCall, answer store.ApprovalAnswer, grant *store.Grant,
	lasts time.Duration) error {
	act := gateway.AdminAction{Command: "ask " + string(answer), Server: drawbridge.ServerID(p.Call.Server),
		Subject: p.Call.Card, Detail: p.ID}
	switch {
	case grant == nil:
	case lasts == 0:
		act.Detail += ", from now on"
	default:
		act.Detail += ", for " + lasts.String()
	}
	return a.recorder.Run(act, func() error {
		by := gateway.CurrentUser() + ", drawbridge " + act.Command
		return a.db.AnswerPendingApproval(ctx, p.ID, answer, by, grant, lasts)
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
	AnyArguments bool                    `json:"anyArguments"`
	Uses         int                     `json:"uses"`
	Call         gateway.ApprovalDetails `json:"call"`
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
		one := Grant{ID: g.ID, Created: g.Created, Until: g.Until, Session: g.Session != "",
			AnyArguments: g.ForCard, Uses: g.Uses}
		if err := json.Unmarshal(g.Shown, &one.Call); err != nil {
			return nil, fmt.Errorf("read the grant %s: what the store has of it is damaged", g.ID)
		}
		all = append(all, one)
	}
	return all, nil
}

// Revoke ends the grant with this ID. If there is no such grant, the error names the command that lists the grants.
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
// s describes. Otherwise it refuses the call.
func (r *Service) AnswerApproval(ctx context.Context, id string, allow bool, s GrantScope) error {
	queue, err := r.OpenApprovals(ctx, false)
	if err != nil {
		return err
	}
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
