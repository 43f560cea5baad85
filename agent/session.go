package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// Errors of a session. An error of [Session.Run] also may be a *BudgetError, a *drawbridge.ModelError or the cause of
// the end of its context.
var (
	// ErrRunning is returned if a run has not ended yet.
	ErrRunning = errors.New("a run has not ended yet")
	// ErrNoPrompt is returned by Run without parts if the conversation waits for a person.
	ErrNoPrompt = errors.New("the prompt is empty, and no interrupted turn can be continued")
	// ErrTooManyTurns and ErrLooping are returned by Run for the outcomes TooManyTurns and Looping.
	ErrTooManyTurns = errors.New("the limit of turns is reached")
	ErrLooping      = errors.New("the model repeated the same calls, with the same results")
	// ErrTooShort is returned by Condense if there are no old turns.
	ErrTooShort = errors.New("the conversation is too short to be condensed")
)

// A Session is one conversation. Its methods may be called from several goroutines, also while Run runs.
type Session struct {
	o       Options
	history History
	tools   Tools
	budget  *Budget
	now     func() time.Time
	newID   func() string
	maker   resultMaker
	root    *conversation

	// changing is locked while a setting is changed, from its entry in the history on.
	changing sync.Mutex

	// mu guards the fields below. told is the permission mode that the model knows of, and beforePlan the one to which
	// the session returns from PlanOnly. asking counts requests to the model that have no answer yet. questions are the
	// sampling requests and the plans that wait for a person.
	mu         sync.Mutex
	model      Model
	settings   Settings
	told       PermissionMode
	beforePlan PermissionMode
	used       drawbridge.ModelUsage
	cost       float64
	label      *RunLabel // it is not changed
	queue      [][]drawbridge.MessagePart
	// earlier are the messages of the person in a continued session, until the tools are told.
	earlier    []drawbridge.MessagePart
	skip       func() // ends the wait for servers; nil if there is none
	running    bool
	asking     int
	condensing bool
	faulted    bool
	questions  map[string]keptQuestion
}

// A RunResult is how a run ended.
type RunResult struct {
	// Run is the ID of the run.
	Run     string
	Outcome Outcome
	// Text is the last text of the model, and Stop why it stopped.
	Text string
	Stop drawbridge.StopReason
	// Turns is the number of turns, Usage what they used, and Cost the price in US dollars, all without sub-agents.
	Turns int
	Usage drawbridge.ModelUsage
	Cost  float64
}

// A Snapshot is the state of a session.
type Snapshot struct {
	Session  string                   `json:"sessionId"`
	Name     string                   `json:"name,omitempty"`
	Model    string                   `json:"model"`
	Thinking drawbridge.ThinkingLevel `json:"thinking,omitempty"`
	Mode     PermissionMode           `json:"mode"`
	// Usage and Cost count sub-agents too.
	Usage drawbridge.ModelUsage `json:"usage"`
	Cost  float64               `json:"cost"`
	// Messages is the number of messages that the model sees, and Tokens an estimate of their size. Window is the
	// maximum; 0 if it is not known.
	Messages int   `json:"messageCount"`
	Tokens   int64 `json:"tokens"`
	Window   int   `json:"window,omitempty"`
	// Queued is the number of messages that wait for the next turn.
	Queued int `json:"queuedCount"`
	// Streaming reports that an answer of the model is awaited; Running, that a run has not ended; Condensing, that a
	// summary is being written. Faulted reports that the last run failed.
	Streaming    bool `json:"streaming"`
	Running      bool `json:"running"`
	Condensing   bool `json:"condensing"`
	Faulted      bool `json:"faulted"`
	AutoCondense bool `json:"autoCondense"`
	// Label is the label of the session's run after its last call; nil if it has read only what is trusted and not
	// private.
	Label *RunLabel `json:"label,omitempty"`
}

// Snapshot returns the state of the session.
func (s *Session) Snapshot() Snapshot {
	messages, tokens := s.root.size()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Snapshot{
		Session: s.history.ID(), Name: s.settings.Name, Model: s.settings.Model, Thinking: s.settings.Thinking,
		Mode: s.settings.Mode, Usage: s.used, Cost: s.cost, Messages: messages, Tokens: tokens,
		Window: s.model.Info().Window, Queued: len(s.queue), Streaming: s.asking > 0, Running: s.running,
		Condensing: s.condensing, Faulted: s.faulted, AutoCondense: !s.o.ManualCondense, Label: s.label,
	}
}

// Run sends a prompt to the model, calls the tools that the model asks for, and repeats that until the model ends. It
// calls on for each event, one at a time and in order, and not after Run has returned; on may be nil. Without parts, Run
// continues a turn that was interrupted, and delivers queued messages. The error is nil if the run completed; else it
// says why the run ended.
func (s *Session) Run(ctx context.Context, parts []drawbridge.MessagePart, on func(Event)) (RunResult, error) {
	if err := s.begin(); err != nil {
		return RunResult{}, err
	}
	defer s.end()
	s.mu.Lock()
	waiting := len(s.queue) > 0
	s.mu.Unlock()
	if len(parts) == 0 && !waiting && !s.root.awaitsModel() {
		return RunResult{}, ErrNoPrompt
	}
	events := &emitter{on: on}
	defer events.close()
	result, err := s.root.run(ctx, parts, s.newID(), events)
	s.mu.Lock()
	s.faulted = result.Outcome == Failed
	s.mu.Unlock()
	return result, err
}

// begin reserves the conversation for one run.
func (s *Session) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return ErrRunning
	}
	s.running = true
	return nil
}

func (s *Session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
}

// Queue adds a message of the person. The model sees it in the next turn of the run, or with the next prompt.
func (s *Session) Queue(parts []drawbridge.MessagePart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, parts)
}

// SkipWait ends the wait for servers that were never listed before, and reports whether there was one. Their tools are
// offered as soon as they start.
func (s *Session) SkipWait() bool {
	s.mu.Lock()
	skip := s.skip
	s.mu.Unlock()
	if skip == nil {
		return false
	}
	skip()
	return true
}

// canSkip sets what SkipWait calls, until the returned function is called.
func (s *Session) canSkip(skip func()) (done func()) {
	set := func(f func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.skip = f
	}
	set(skip)
	return func() { set(nil) }
}

// Condense replaces old turns by a summary that the model writes. They stay in the history.
func (s *Session) Condense(ctx context.Context, on func(Event)) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	events := &emitter{on: on}
	defer events.close()
	s.root.start(s.newID(), events)
	return s.root.condense(ctx, 0)
}

// Answer passes a person's answer on to the call that asked. If a server asked for an answer of the model and the
// person allows it without a content, the session's model writes the content.
func (s *Session) Answer(ctx context.Context, a Answer) error {
	s.mu.Lock()
	kept, ok := s.questions[a.ID]
	delete(s.questions, a.ID)
	s.mu.Unlock()
	switch {
	case ok && kept.Kind == AskPlan:
		return s.answerPlan(ctx, kept, a)
	case ok && a.Allow && len(a.Content) == 0:
		content, err := s.root.sample(ctx, kept.Question)
		if err != nil {
			return errors.Join(err, s.tools.Answer(ctx, Answer{ID: a.ID}))
		}
		a.Content = content
	}
	return s.tools.Answer(ctx, a)
}

// SetModel changes the model from the next turn on.
func (s *Session) SetModel(ctx context.Context, m Model) error {
	if m == nil {
		return errors.New("change the model: there is none")
	}
	if err := s.change(ctx, Settings{Model: m.Info().String()}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model = m
	return nil
}

// SetMode changes the permission mode for all calls that are made from now on. The model is told with the next prompt.
func (s *Session) SetMode(ctx context.Context, mode PermissionMode) error {
	if !slices.Contains(drawbridge.PermissionModes(), mode) {
		return fmt.Errorf("change the permission mode: there is no mode %q", mode)
	}
	return s.change(ctx, Settings{Mode: mode})
}

// SetThinking changes how much the model thinks from the next turn on.
func (s *Session) SetThinking(ctx context.Context, level drawbridge.ThinkingLevel) error {
	return s.change(ctx, Settings{Thinking: level})
}

// SetName sets the name that lists of sessions show.
func (s *Session) SetName(ctx context.Context, name string) error {
	return s.change(ctx, Settings{Name: name})
}

// change records a change of the settings and then makes it.
func (s *Session) change(ctx context.Context, change Settings) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.changeSettings(ctx, change)
}

// changeSettings is change. The caller holds changing.
func (s *Session) changeSettings(ctx context.Context, change Settings) error {
	if change == (Settings{}) {
		return nil
	}
	if _, err := s.root.append(ctx, Entry{Kind: SettingsEntry, Settings: &change}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow(change)
	return nil
}

// follow changes the settings. The caller holds mu, if the session is in use.
func (s *Session) follow(change Settings) {
	if change.Mode == PlanOnly && s.settings.Mode != PlanOnly {
		s.beforePlan = s.settings.Mode
	}
	s.settings = s.settings.merge(change)
}

// current returns the model and how much it thinks.
func (s *Session) current() (Model, drawbridge.ThinkingLevel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model, s.settings.Thinking
}

// mode returns the permission mode.
func (s *Session) mode() PermissionMode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings.Mode
}

// addUsage counts what an answer of the model used.
func (s *Session) addUsage(u drawbridge.ModelUsage, cost float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used, s.cost = s.used.Add(u), s.cost+cost
}

// addLabel notes the label of the run after a call.
func (s *Session) addLabel(l *RunLabel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.label = joinLabel(s.label, l)
}

// takeQueue returns the messages of the person that wait, and empties the queue.
func (s *Session) takeQueue() [][]drawbridge.MessagePart {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queue
	s.queue = nil
	return queue
}

// requeue puts messages back at the front of the queue.
func (s *Session) requeue(messages [][]drawbridge.MessagePart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(messages, s.queue...)
}
