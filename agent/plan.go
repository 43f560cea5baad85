package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// answerPlan acts on a person's answer to a plan and passes it on to the call that presented the plan.
func (s *Session) answerPlan(ctx context.Context, q keptQuestion, a Answer) error {
	a.Always, a.Content = false, nil
	if q.from.path != "" && a.Allow { // a sub-agent cannot change the mode of the session
		a.Allow, a.Reason = false, "only the session's own agent can present a plan"
	}
	if !a.Allow {
		return s.tools.Answer(ctx, a)
	}
	mode, changed, err := s.endPlan(ctx)
	if err != nil {
		return errors.Join(err, s.tools.Answer(ctx, Answer{ID: a.ID, Reason: "the plan mode could not be ended"}))
	}
	if changed {
		q.from.emitTo(q.events, Event{Kind: ModeChanged, Mode: mode})
	}
	a.Reason = ""
	if a.Content, err = json.Marshal(PlanReport{Mode: mode, Note: modeText(mode)}); err != nil {
		return fmt.Errorf("pass on the answer: %w", err)
	}
	return s.tools.Answer(ctx, a)
}

// modeAfterPlan returns the mode that holds when the plan mode has ended.
func (s *Session) modeAfterPlan() PermissionMode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.beforePlan, AskFirst)
}

// endPlan ends the mode PlanOnly: the mode is again what it was before. It returns the mode, and whether it changed: the
// person may have changed it already.
func (s *Session) endPlan(ctx context.Context) (mode PermissionMode, changed bool, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	mode = s.settings.Mode
	s.mu.Unlock()
	before := s.modeAfterPlan()
	if mode != PlanOnly {
		return mode, false, nil
	}
	if err := s.changeSettings(ctx, Settings{Mode: before}); err != nil {
		return mode, false, err
	}
	s.mu.Lock()
	s.told = before // the result of the call says it
	s.mu.Unlock()
	return before, true, nil
}
