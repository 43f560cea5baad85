package agent_test

import (
	"context"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/agent"
)

// startingTools are tools of which one server has not started: a briefing that waits ends with its context.
type startingTools struct{ box }

func (s *startingTools) Brief(ctx context.Context, _ agent.Identity, wait bool) (agent.Briefing, error) {
	if wait {
		<-ctx.Done()
		return agent.Briefing{}, context.Cause(ctx)
	}
	return agent.Briefing{Servers: []agent.ServerBriefing{{Name: "a"}, {Name: "slow", Problem: "it is not connected yet", Waiting: true}}}, nil
}

// TestWaitForServersIsSkipped has a run that waits for a server until the person skips that.
func TestWaitForServersIsSkipped(t *testing.T) {
	s := open(t, agent.Options{Model: answers(says("done")), Tools: &startingTools{}})
	if s.SkipWait() {
		t.Error("a session without a run waits")
	}
	var awaited string
	result, err := s.Run(t.Context(), prompt("hello"), func(e agent.Event) {
		if e.Kind == agent.ServersAwaited {
			if awaited = e.Text; !s.SkipWait() {
				t.Error("the session does not wait")
			}
		}
	})
	if err != nil || result.Text != "done" || awaited != "slow" {
		t.Errorf("%+v, %v; waited for %q", result, err, awaited)
	}
	if s.SkipWait() {
		t.Error("the session still waits")
	}
}

// TestWaitForServersIsCancelled cancels a run that waits for a server.
func TestWaitForServersIsCancelled(t *testing.T) {
	s := open(t, agent.Options{Model: answers(says("done")), Tools: &startingTools{}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result, err := s.Run(ctx, prompt("hello"), func(e agent.Event) {
		if e.Kind == agent.ServersAwaited {
			cancel()
		}
	})
	if err == nil || result.Outcome != agent.Cancelled {
		t.Errorf("%+v, %v", result, err)
	}
	awaited := false
	_, err = s.Run(t.Context(), prompt("again"), func(e agent.Event) {
		if e.Kind == agent.ServersAwaited {
			awaited = s.SkipWait()
		}
	})
	if err != nil || !awaited {
		t.Errorf("the next run did not wait: %v", err)
	}
}
