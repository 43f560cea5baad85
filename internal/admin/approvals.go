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

// Approvals reads and answers the calls that wait for a person. Close it after use.
type Approvals struct {
	db       *store.DB // nil where no store exists
	recorder gateway.AdminRecorder
}

// OpenApprovals opens the queue of calls. Where no store exists, the queue is empty unless create is set.
func (r *Service) OpenApprovals(ctx context.Context, create bool) (*Approvals, error) {
	db, err := r.openStoreOfSettings(ctx, create)
	if err != nil {
		return nil, err
	}
	return &Approvals{db, r.o.AdminRecorder}, nil
}

// Close closes the store.
func (a *Approvals) Close() error { return closeStore(a.db, nil) }

// A PendingCall is a call that waits for an answer until a moment.
type PendingCall struct {
	ID      string                  `json:"id"`
	Created time.Time               `json:"created"`
	Until   time.Time               `json:"until"`
	Call    gateway.ApprovalDetails `json:"call"`
	// Damage is set where the store holds details that cannot be read; Call is empty then.
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

// Pending returns the calls that wait.
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

// Find returns the call that waits under an ID, or an error that names the command that lists the calls.
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

// shortID returns an ID that a person typed on one line, cut to 20 characters.
func shortID(id string) string {
	return safetext.Truncate(safetext.Exact(id), 20, safetext.Runes, "…")
}

// A GrantScope is what a person allows beyond one call. The zero value allows nothing more.
type GrantScope struct {
	// Duration is how long the grant lasts, in JSON in nanoseconds; negative is invalid.
	Duration time.Duration `json:"duration,omitempty"`
	// Session ends the grant with the caller's session, after 24 hours at the latest.
	Session bool `json:"session,omitempty"`
	// AnyArguments grants the tool with any arguments. It needs Duration or Session.
	AnyArguments bool `json:"any_arguments,omitempty"`
	// Always grants the same call until it is revoked. It excludes the other fields.
	Always bool `json:"always,omitempty"`
}

// maxSessionGrant is how long a grant for a session lasts at most.
const maxSessionGrant = 24 * time.Hour

// Validate returns a UserError where fields contradict each other.
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

// newGrant returns the grant of a scope for a call and its duration; nil where the scope grants nothing.
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

// Allow lets a call continue and grants the scope. The audit records both.
func (a *Approvals) Allow(ctx context.Context, p PendingCall, s GrantScope) error {
	grant, lasts, err := s.newGrant(p)
	if err != nil {
		return err
	}
	return a.answer(ctx, p, store.AnswerAllowed, grant, lasts)
}

// Deny refuses a call. The audit records it.
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

// A Grant allows more than one call.
type Grant struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	// Until is zero where the grant does not expire.
	Until time.Time `json:"until,omitzero"`
	// Session reports that the grant ends with the caller's session.
	Session bool `json:"session"`
	// AnyArguments reports that the grant is for the tool with any arguments; those of Call were only the first.
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

// Revoke ends a grant. If no grant has the ID, the error names the command that lists them.
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

// AnswerApproval lets the call that waits under an ID continue, with a further scope, or refuses it.
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
