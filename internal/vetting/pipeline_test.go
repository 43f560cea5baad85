package vetting

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/trust"
)

// A stageFunc is a stage for tests.
type stageFunc func(s *Inspection) error

func (f stageFunc) Apply(_ context.Context, s *Inspection) error { return f(s) }

// A fakeGate quarantines every server or none.
type fakeGate bool

func (fakeGate) AddEvents(drawbridge.ServerID, ...trust.Event) {}
func (g fakeGate) Quarantined(drawbridge.ServerID) bool        { return bool(g) }

func showTools(s *Inspection) error {
	for i, tool := range s.Tools {
		s.Tools[i].Definition = tool.Original
	}
	s.addNote("tool", "a", "flagged", "it is odd")
	return nil
}

func TestAPipelineThatFailsShowsNothingAndBlocksCalls(t *testing.T) {
	for name, stage := range map[string]stageFunc{
		"an error": func(*Inspection) error { return errors.New("no rules") },
		"a panic":  func(*Inspection) error { panic("no rules") },
	} {
		var blocked BlockedCalls
		p := Pipeline{Stages: Chain{stageFunc(showTools), stage}, Blocked: &blocked, Trust: fakeGate(false),
			Log: slog.New(slog.DiscardHandler)}
		v, err := p.Run(t.Context(), deck.Server{ID: "s"}, listed(`{"name":"a"}`))
		if err == nil || !strings.HasPrefix(err.Error(), "vet the listing of s: ") || len(v.Tools) > 0 {
			t.Errorf("%s: shows %v, error %v", name, v.Tools, err)
		}
		call := drawbridge.Call{Method: mcp.MethodToolsCall, Params: []byte(`{"name":"a"}`)}
		if err := blocked.Check(t.Context(), "s", call); drawbridge.AsFault(err).Code != drawbridge.PolicyBlocked {
			t.Errorf("%s: the call is checked with %v", name, err)
		}
		p.Stages = p.Stages[:1]
		if _, err := p.Run(t.Context(), deck.Server{ID: "s"}, listed(`{"name":"a"}`)); err != nil {
			t.Errorf("%s: the next listing: %v", name, err)
		}
		if err := blocked.Check(t.Context(), "s", call); err != nil {
			t.Errorf("%s: after the next listing the call is checked with %v", name, err)
		}
	}
}

func TestAQuarantinedServerShowsItsNotesOnly(t *testing.T) {
	p := Pipeline{Stages: Chain{stageFunc(showTools)}, Blocked: &BlockedCalls{}, Trust: fakeGate(true),
		Log: slog.New(slog.DiscardHandler)}
	v, err := p.Run(t.Context(), deck.Server{ID: "s"}, listed(`{"name":"a"}`))
	if err != nil || len(v.Tools) > 0 || len(v.Notes) != 1 {
		t.Errorf("shows %+v, error %v", v, err)
	}
	if skill, err := p.FilterSkill(t.Context(), deck.Server{ID: "s"}, []byte(`{}`)); skill != nil || err != nil {
		t.Errorf("skill %s, error %v", skill, err)
	}
}
