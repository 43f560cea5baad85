package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/oklog/ulid/v2"
)

const (
	// defaultMaxTurns is the default of Options.MaxTurns.
	defaultMaxTurns = 200
	// parallelCalls is the number of calls of one message that run at the same time.
	parallelCalls = 8
)

// Options are the options of a session. Only Model is required.
type Options struct {
	// Model is asked for the messages.
	Model Model
	// Tools calls the tools; nil means that there are none.
	Tools Tools
	// History keeps the entries; nil means a [MemoryHistory]. If it has entries, the session continues them.
	History History
	// Budget limits what the session uses, with its sub-agents; nil means no limits. What a resumed session has used
	// counts.
	Budget *Budget
	// Mode is the permission mode. Empty means that of the history, or AskFirst; Bypass is not taken from a history.
	Mode PermissionMode
	// Thinking is how much the model thinks; empty means that of the history, or the provider's default.
	Thinking drawbridge.ThinkingLevel
	// Instructions replaces the built-in system prompt. AppendInstructions is added to it. What is said about the tools
	// follows both.
	Instructions, AppendInstructions string
	// MaxTurns is the maximum number of turns of a run; 0 means 200.
	MaxTurns int
	// MaxOutput limits the tokens of an answer; 0 means the provider's default.
	MaxOutput int
	// ResultLimit is the maximum size in bytes of a result's text; 0 means 64 KiB. The middle of a longer text is cut out.
	ResultLimit int
	// ManualCondense leaves old turns as they are until the model refuses them as too long.
	ManualCondense bool
	// Now returns the time, and NewID a new ID; nil means the system's clock and ULIDs.
	Now   func() time.Time
	NewID func() string
	// Fence marks a text from outside, so that a model can see where it ends; nil means a fence with a random word.
	Fence func(source, text string) string
}

// New returns a session. If the history has entries, the session continues them. A call that had been sent without a
// result is then given the result that its outcome is unknown; it is not repeated. New writes that to the history.
func New(ctx context.Context, o Options) (*Session, error) {
	if o.Model == nil {
		return nil, errors.New("start a session: it has no model")
	}
	if o.Mode != "" && !slices.Contains(drawbridge.PermissionModes(), o.Mode) {
		return nil, fmt.Errorf("start a session: %q is not a permission mode (use default, acceptEdits, plan or bypass)", o.Mode)
	}
	s := newSession(o)
	if err := s.resume(ctx); err != nil {
		return nil, fmt.Errorf("resume the session %s: %w", s.history.ID(), err)
	}
	if change := (Settings{Thinking: o.Thinking, Mode: o.Mode}); change != (Settings{}) {
		s.follow(change)
	}
	s.settings.Model = o.Model.Info().String()
	return s, nil
}

// newSession returns a session without entries.
func newSession(o Options) *Session {
	s := &Session{o: o, history: o.History, tools: o.Tools, budget: o.Budget, now: o.Now, newID: o.NewID,
		maker: resultMaker{limit: o.ResultLimit, fence: o.Fence}, model: o.Model, settings: Settings{Mode: AskFirst}}
	if s.history == nil {
		s.history = NewMemoryHistory()
	}
	if s.tools == nil {
		s.tools = noTools{}
	}
	if s.budget == nil {
		s.budget = &Budget{}
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.newID == nil {
		s.newID = func() string { return ulid.Make().String() }
	}
	if s.maker.limit <= 0 {
		s.maker.limit = defaultResultLimit
	}
	if s.maker.fence == nil {
		s.maker.fence = Fence
	}
	if s.o.MaxTurns <= 0 {
		s.o.MaxTurns = defaultMaxTurns
	}
	s.root = &conversation{s: s}
	return s
}

// noTools are the tools of a session without tools.
type noTools struct{}

var _ Tools = noTools{}

func (noTools) Brief(context.Context, Identity, bool) (Briefing, error) { return Briefing{}, nil }

func (noTools) Select(context.Context, Identity, string, []drawbridge.CardName) ([]drawbridge.ToolDefinition, error) {
	return nil, nil
}

func (noTools) Call(_ context.Context, _ Identity, call drawbridge.ToolCall, _ func(CallUpdate)) (CallOutcome, error) {
	return CallOutcome{}, &drawbridge.Fault{Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound,
		Step: fmt.Sprintf("call %s", call.Name), Err: errors.New("this session has no tools")}
}

func (noTools) Answer(context.Context, Answer) error {
	return errors.New("no call waits for an answer")
}
