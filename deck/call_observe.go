package deck

import (
	"context"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
)

// A CallObserver is a guard that follows which data calls read and write.
type CallObserver interface {
	Guard
	// BeforeSend is called when all guards have allowed a call or a person has approved it, before the call is sent. If
	// it returns an error, the call is refused. Otherwise the deck calls after, unless it is nil, with the result or the
	// error of the call, before the caller gets it; after may add to the _meta of the result. If after returns an error, the
	// caller gets an error in place of the result.
	BeforeSend(ctx context.Context, q Question) (after func(*drawbridge.Result, error) error, err error)
	// Approved is called after a person has approved a call for which the guard had required an approval; by names the
	// person. If it returns an error, the call is refused.
	Approved(ctx context.Context, q Question, by string) error
}

// A LabellingGuard is a guard that knows the labels of runs. They are recorded in the audit.
type LabellingGuard interface {
	Guard
	// RunLabel returns the label of the run of a caller for people, and at most [audit.MaxOrigins] sources that explain
	// it. The label is empty if the run has read only what is trusted and not private.
	RunLabel(ctx context.Context, caller drawbridge.Caller) (label string, origins []string)
}

// noteLabel notes the label of the run with which a call is made for the audit.
func (d *Deck) noteLabel(ctx context.Context, s *callState) {
	if s.log == nil {
		return
	}
	for _, g := range d.guards.labellers {
		if label, origins := g.RunLabel(ctx, s.call.Caller); label != "" {
			s.log.NoteLabel(label, origins)
		}
	}
}

// observeCall tells the observers that the call is about to be sent.
func (d *Deck) observeCall(ctx context.Context, s *callState) error {
	for _, o := range d.guards.observers {
		after, err := o.BeforeSend(ctx, s.question())
		if err != nil {
			verdict := drawbridge.Verdict{Rule: "flow", Reason: err.Error()}
			return s.refuse(verdict, refusalFault(s.call.Method, s.target.spec, verdict, err))
		}
		if after != nil {
			s.observers = append(s.observers, after)
		}
	}
	return nil
}

// tellObservers tells the observers what a call has returned.
func (s *callState) tellObservers(err error) error {
	var all []error
	for _, after := range s.observers {
		all = append(all, after(&s.result, err))
	}
	if failed := errors.Join(all...); failed != nil {
		return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError,
			Step: fmt.Sprintf("%s %s: store the label of the result", s.call.Method, clipText(string(s.target.spec.Name))), Err: failed,
			Next: "drawbridge doctor"}
	}
	return nil
}

// tellApproved tells the observers that had required an approval that a person has given it.
func (d *Deck) tellApproved(ctx context.Context, s *callState, by string) error {
	for _, o := range d.guards.observers {
		if err := o.Approved(ctx, s.question(), by); err != nil {
			return refusalFault(s.call.Method, s.target.spec, drawbridge.Verdict{}, err)
		}
	}
	return nil
}
