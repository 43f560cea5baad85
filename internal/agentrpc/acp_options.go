package agentrpc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

const (
	// openTime is how long the opening of a session waits for the names of the models.
	openTime = 1500 * time.Millisecond
	// requestTime is how long a host may look for its models, or for one of them.
	requestTime = 45 * time.Second
)

// errLate is the cause of the end of a request to the host.
var errLate = fmt.Errorf("the providers of models did not answer within %s", requestTime)

// A modeState has the permission modes that a client can choose.
type modeState struct {
	Current   agent.PermissionMode `json:"currentModeId"`
	Available []modeInfo           `json:"availableModes"`
}

type modeInfo struct {
	ID          agent.PermissionMode `json:"id"`
	Name        string               `json:"name"`
	Description string               `json:"description"`
}

// modes returns the permission modes.
func modes() []modeInfo {
	return []modeInfo{
		{agent.AskFirst, "Ask", "ask before each call that may change something"},
		{agent.AcceptEdits, "Accept edits", "do not ask before edits of files in the working directory"},
		{agent.PlanOnly, "Plan", "refuse calls that may change something"},
		{agent.Bypass, "Bypass", "ask only where a rule says so"},
	}
}

// A configOption is a setting of a session, with the values that a client can choose.
type configOption struct {
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	Category string        `json:"category"`
	Type     string        `json:"type"`
	Current  string        `json:"currentValue"`
	Options  []optionValue `json:"options"`
}

// An optionValue is a value of a setting.
type optionValue struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// The IDs of the settings.
const (
	modeOption     = "mode"
	modelOption    = "model"
	thinkingOption = "thinking"
)

// defaultLevel stands for the provider's default until a level of thinking is chosen.
const defaultLevel = "default"

// options returns the settings of the session.
func (a *acpSession) options() []configOption {
	now := a.agent.Snapshot()
	mode := configOption{modeOption, "Permission mode", "mode", "select", string(now.Mode), nil}
	for _, m := range modes() {
		mode.Options = append(mode.Options, optionValue{string(m.ID), m.Name, m.Description})
	}
	model := configOption{modelOption, "Model", "model", "select", now.Model, nil}
	names, _ := a.server.models.known()
	if !slices.Contains(names, now.Model) {
		names = append([]string{now.Model}, names...)
	}
	for _, name := range names {
		model.Options = append(model.Options, optionValue{Value: name, Name: name})
	}
	thinking := configOption{thinkingOption, "Thinking", "thought_level", "select", string(now.Thinking), nil}
	if now.Thinking == "" {
		thinking.Current = defaultLevel
		thinking.Options = []optionValue{{defaultLevel, defaultLevel, "as the provider decides"}}
	}
	for _, level := range drawbridge.ThinkingLevels() {
		thinking.Options = append(thinking.Options, optionValue{Value: string(level), Name: string(level)})
	}
	return []configOption{mode, model, thinking}
}

// setOption changes a setting of a session, and responds with all settings.
func (s *acpServer) setOption(id json.RawMessage, p acpParams) *rpcError {
	session := s.session(p.Session)
	if session == nil {
		return sessionNotFound()
	}
	value, ok := rawjson.DecodeString(p.Value)
	if !ok {
		return invalidParams("value is not a string")
	}
	running := session.background(func() {
		ctx, cancel := context.WithTimeoutCause(session.ctx, requestTime, errLate)
		defer cancel()
		if err := session.change(ctx, p.Option, value); err != nil {
			s.respond(id, nil, invalidParams(err.Error()))
			return
		}
		s.respond(id, struct {
			Options []configOption `json:"configOptions"`
		}{session.options()}, nil)
	})
	if !running {
		return sessionNotFound()
	}
	return nil
}

// change changes a setting. The host may have to look for a model.
func (a *acpSession) change(ctx context.Context, option, value string) error {
	switch option {
	case modeOption:
		if err := a.agent.SetMode(ctx, agent.PermissionMode(value)); err != nil {
			return err
		}
		a.update(sessionUpdate{Update: "current_mode_update", Mode: value})
		return nil
	case modelOption:
		m, err := a.server.host.FindModel(ctx, value)
		if err != nil {
			return err
		}
		return a.agent.SetModel(ctx, m)
	case thinkingOption:
		if value == defaultLevel && a.agent.Snapshot().Thinking == "" {
			return nil
		}
		level := drawbridge.ThinkingLevel(value)
		if !slices.Contains(drawbridge.ThinkingLevels(), level) {
			return invalidParams("unknown level of thinking: the option thinking lists the levels")
		}
		return a.agent.SetThinking(ctx, level)
	}
	return invalidParams("unknown option: the session's configOptions list the options")
}

// A modelList has the names of the models that a session can use. The host is asked once in a connection.
type modelList struct {
	once sync.Once
	// ready is closed when names is set.
	ready chan struct{}
	names []string
}

// known returns the names, and reports whether the host has been asked.
func (l *modelList) known() (names []string, ok bool) {
	select {
	case <-l.ready:
		return l.names, true
	default:
		return nil, false
	}
}

// loadModels asks the host for its models. If there is an error, a client can choose only the model that is in use.
func (s *acpServer) loadModels() {
	defer close(s.models.ready)
	ctx, cancel := context.WithTimeout(s.ctx, requestTime)
	defer cancel()
	if names, err := s.host.Models(ctx); err == nil {
		s.models.names = names
	}
}

// awaitModels waits a short time for the names of the models, and reports whether they are known.
func (a *acpSession) awaitModels() bool {
	timer := time.NewTimer(openTime)
	defer timer.Stop()
	select {
	case <-a.server.models.ready:
		return true
	case <-timer.C:
	case <-a.ctx.Done():
	}
	return false
}

// showModels tells the client the names of the models as soon as they are known.
func (a *acpSession) showModels() {
	a.background(func() {
		select {
		case <-a.server.models.ready:
			a.update(sessionUpdate{Update: "config_option_update", Options: a.options()})
		case <-a.ctx.Done():
		}
	})
}
