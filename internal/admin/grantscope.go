package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

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
	// Count permits calls of a waiting script until each tool has been called so many times. The calls that wait are
	// counted. Such a grant is for the same script with the same input, and for arguments like those of the waiting calls:
	// the ones that differ may have any value. If Duration is 0, the grant ends after 24 hours at the latest.
	Count int `json:"count,omitempty"`
	// Varying are names of arguments that may have any value although all waiting calls have the same. It needs Count.
	Varying []string `json:"varying,omitempty"`
	// Always permits calls with the same arguments until the grant is revoked. It cannot be combined with other fields.
	Always bool `json:"always,omitempty"`
}

const (
	// maxSessionGrant is how long a grant for a session or with a count is valid if the person gave no duration.
	maxSessionGrant = 24 * time.Hour
	// maxCount is the highest count, and maxCountDuration the longest duration of a grant with a count.
	maxCount         = 10_000
	maxCountDuration = 30 * 24 * time.Hour
)

// Validate returns a UserError if fields cannot be combined or Duration is negative.
func (s GrantScope) Validate() error {
	switch {
	case s.Duration < 0:
		return UserError("--for wants a time such as 10m or 2h")
	case s.Always && (s.Duration > 0 || s.Session || s.AnyArguments || s.Count > 0):
		return UserError("--always-this is for this very call; leave the other flags out")
	case s.Count < 0 || s.Count > maxCount:
		return UserError(fmt.Sprintf("--count wants a number of calls, 1 to %d", maxCount))
	case s.Count == 0 && len(s.Varying) > 0:
		return UserError("--vary needs --count")
	case s.Count > 0 && (s.Always || s.AnyArguments):
		return UserError("--count is for calls like the waiting ones; combine it with --for, --session and --vary only")
	case s.Count > 0 && s.Duration > maxCountDuration:
		return UserError("a grant with --count ends after 720h (30 days) at the latest")
	case s.AnyArguments && s.Duration == 0 && !s.Session:
		return UserError("--any-arguments needs an end: --for TIME or --session")
	}
	return nil
}

// newGrants returns the grants to store when the call p is approved, and their duration; 0 means no end. There are none
// if the scope permits only the call.
func (s GrantScope) newGrants(p PendingCall) (grants []store.Grant, lasts time.Duration, err error) {
	if err := s.Validate(); err != nil {
		return nil, 0, err
	}
	switch {
	case s.Session && p.stored.Session == "":
		return nil, 0, errors.New("the caller has no session (--for TIME grants it for a time)")
	case s.Count > 0:
		grants, err = s.newCountedGrants(p)
	case s.Always || s.Session || s.Duration > 0:
		grants, err = s.newCallGrant(p)
	}
	if err != nil {
		return nil, 0, err
	}
	for i := range grants {
		if s.Session {
			grants[i].Session = p.stored.Session
		}
	}
	if lasts = s.Duration; lasts == 0 && (s.Session || s.Count > 0) {
		lasts = maxSessionGrant
	}
	return grants, lasts, nil
}

// Preview returns the grants that [Approvals.Allow] would store for the call p, without their IDs. Their Until is that of
// grants stored now. A person can read there what else they allow.
func (s GrantScope) Preview(p PendingCall) (all []Grant, err error) {
	grants, lasts, err := s.newGrants(p)
	if err != nil {
		return nil, err
	}
	for _, g := range grants {
		one, err := newGrant(g)
		if err != nil {
			return nil, err
		}
		if one.Created = time.Now(); lasts > 0 {
			one.Until = one.Created.Add(lasts)
		}
		all = append(all, one)
	}
	return all, nil
}

// newCallGrant returns the grant for the same call again, or for the same tool.
func (s GrantScope) newCallGrant(p PendingCall) ([]store.Grant, error) {
	shown, err := p.Call.RedactedJSON()
	if err != nil {
		return nil, err
	}
	if s.AnyArguments {
		return []store.Grant{{Subject: p.stored.Card, ForCard: true, Shown: shown}}, nil
	}
	return []store.Grant{{Subject: p.stored.Call, Shown: shown}}, nil
}

// newCountedGrants returns a grant for each tool that the waiting script calls.
func (s GrantScope) newCountedGrants(p PendingCall) ([]store.Grant, error) {
	if len(p.Call.Effects) == 0 {
		return nil, UserError("--count is for calls that a script collected, and this is a single call")
	}
	for _, name := range s.Varying {
		if !slices.ContainsFunc(p.Call.Effects, func(e gateway.ScriptEffect) bool {
			return e.Pattern != nil && e.Pattern.Has(name)
		}) {
			return nil, UserError("--vary: no waiting call has the argument " + safetext.Quote(name))
		}
	}
	var grants []store.Grant
	for _, e := range p.Call.Effects {
		switch {
		case e.Pattern == nil:
			return nil, fmt.Errorf("servers may read the arguments of %s in different ways, so no count can cover them",
				safetext.Exact(e.Card))
		case len(e.Calls) > s.Count:
			return nil, UserError(fmt.Sprintf("--count must be at least %d: so many calls of %s wait", len(e.Calls),
				safetext.Exact(e.Card)))
		}
		pattern := e.Pattern.Vary(s.Varying)
		e.Pattern, e.Grants = &pattern, nil
		text, err := json.Marshal(pattern)
		if err != nil {
			return nil, err
		}
		one := p.Call
		one.Effects = []gateway.ScriptEffect{e}
		shown, err := one.RedactedJSON()
		if err != nil {
			return nil, err
		}
		grants = append(grants, store.Grant{Subject: e.Subject, Pattern: string(text), Max: s.Count, Uses: len(e.Calls),
			Shown: shown})
	}
	return grants, nil
}
