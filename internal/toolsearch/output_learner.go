package toolsearch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A LearnedTool identifies a tool whose output type is learned.
type LearnedTool struct {
	Server drawbridge.ServerID
	// ConfigHash is the hash of the server's configuration. Tool is the server's own name of the tool.
	ConfigHash, Tool string
	// Definition is the tool in the form that may be shown, with the server's own name. What was learned for another
	// definition does not count.
	Definition json.RawMessage
}

// definitionHash returns the hash of the definition. The order of members and the format do not change it.
func (t LearnedTool) definitionHash() string {
	sum := sha256.Sum256(rawjson.Canonical(t.Definition))
	return hex.EncodeToString(sum[:])
}

// A LearnedOutput is the type of a tool's output, as learned from its results.
type LearnedOutput struct {
	// Schema is a JSON Schema with types and names only; see [ResultShape].
	Schema json.RawMessage `json:"schema"`
	// Results is the number of results that it was learned from. Version is 1 for the first definition of the tool, and
	// increases with each changed definition.
	Results int `json:"results"`
	Version int `json:"version"`
}

// An OutputStore stores learned outputs. The definition is the hash of the tool's definition.
type OutputStore interface {
	// UpdateLearnedOutput adds results to a tool's number of results, and replaces the schema by the result of update. The
	// function update gets the stored schema of this definition; empty if there is none. If it returns nil, nothing changes.
	UpdateLearnedOutput(ctx context.Context, tool LearnedTool, definition string, results int,
		update func(schema json.RawMessage) json.RawMessage) error
	// LearnedOutput returns the learned output of this definition; its Results are 0 if there is none.
	LearnedOutput(ctx context.Context, tool LearnedTool, definition string) (LearnedOutput, error)
	// ForgetLearnedOutputs deletes the learned outputs of the servers with these configuration hashes.
	ForgetLearnedOutputs(ctx context.Context, configHashes []string) error
}

const (
	// MaxLearnedResult is the maximum size of a result from which an OutputLearner learns.
	MaxLearnedResult = 256 << 10
	// maxQueuedResults and maxQueuedBytes limit the queue of an OutputLearner. Results that do not fit are dropped.
	maxQueuedResults = 128
	maxQueuedBytes   = 8 << 20
	// learnDelay is the time from the first result in the queue until the results are examined together.
	learnDelay = 100 * time.Millisecond
	// learnTimeout is the maximum time to store what was learned from the results in the queue. The end of a caller's
	// context does not interrupt storing.
	learnTimeout = 5 * time.Second
)

// An OutputLearner learns the output types of tools from their results, after the results were returned to the caller.
// It stores types and names, never values. It is safe for concurrent use. A nil OutputLearner learns nothing.
type OutputLearner struct {
	store OutputStore
	check NameCheck
	log   *slog.Logger
	// wake receives an element when a result is added to the empty queue.
	wake chan struct{}

	// mu guards the fields below.
	mu     sync.Mutex
	queue  []queuedResult
	bytes  int
	closed bool

	// learning is locked while results are taken from the queue and stored.
	learning sync.Mutex
}

type queuedResult struct {
	tool   LearnedTool
	result json.RawMessage
}

// NewOutputLearner returns a learner that stores only names that the check accepts.
func NewOutputLearner(s OutputStore, check NameCheck, log *slog.Logger) *OutputLearner {
	return &OutputLearner{store: s, check: check, log: log, wake: make(chan struct{}, 1)}
}

// Submit adds a result to the queue and returns at once. The bytes of the result must not change afterwards.
func (l *OutputLearner) Submit(tool LearnedTool, result json.RawMessage) {
	if l == nil || len(result) > MaxLearnedResult {
		return
	}
	l.mu.Lock()
	full := l.closed || len(l.queue) >= maxQueuedResults || l.bytes+len(result) > maxQueuedBytes
	if !full {
		l.queue = append(l.queue, queuedResult{tool, result})
		l.bytes += len(result)
	}
	first := !full && len(l.queue) == 1
	l.mu.Unlock()
	if first {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// Run learns from the results in the queue until ctx ends, and then returns nil. Call Close after Run to learn from the
// remaining results.
func (l *OutputLearner) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(learnDelay):
		}
		l.learnQueued(ctx)
	}
}

// Close learns from the results in the queue. Results that are submitted after Close are dropped.
func (l *OutputLearner) Close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.learnQueued(ctx)
	return nil
}

// Output returns the learned output of a tool, from all results that were submitted before. ok is false if nothing was
// learned, or if the stored schema is damaged.
func (l *OutputLearner) Output(ctx context.Context, tool LearnedTool) (out LearnedOutput, ok bool) {
	if l == nil {
		return LearnedOutput{}, false
	}
	l.learnQueued(ctx)
	out, err := l.store.LearnedOutput(ctx, tool, tool.definitionHash())
	if err != nil {
		l.log.Error("read a learned output", "server", tool.Server, "tool", tool.Tool, "err", err)
	}
	if _, valid := ParseShape(out.Schema); err != nil || out.Results == 0 || !valid {
		return LearnedOutput{}, false
	}
	return out, true
}

// Forget deletes what was learned from servers with these configuration hashes.
func (l *OutputLearner) Forget(ctx context.Context, configHashes ...string) error {
	if l == nil || len(configHashes) == 0 {
		return nil
	}
	l.learnQueued(ctx)
	return l.store.ForgetLearnedOutputs(ctx, configHashes)
}

// learnQueued learns from the results that are in the queue, those of one tool together.
func (l *OutputLearner) learnQueued(ctx context.Context) {
	l.learning.Lock()
	defer l.learning.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), learnTimeout)
	defer cancel()
	l.mu.Lock()
	queue := l.queue
	l.queue, l.bytes = nil, 0
	l.mu.Unlock()
	type learned struct {
		tool    LearnedTool
		shape   *ResultShape
		results int
	}
	type toolKey struct{ configHash, tool, definition string }
	all := map[toolKey]*learned{}
	for _, q := range queue {
		shape, ok := l.shapeOf(q)
		if !ok {
			continue
		}
		key := toolKey{q.tool.ConfigHash, q.tool.Tool, q.tool.definitionHash()}
		one := all[key]
		if one == nil {
			one = &learned{tool: q.tool}
			all[key] = one
		}
		one.shape, one.results = MergeShapes(one.shape, shape), one.results+1
	}
	for key, one := range all {
		l.storeShape(ctx, one.tool, key.definition, one.shape, one.results)
	}
}

// shapeOf returns the shape of a result. A panic is logged, because text of a server must not end the process.
func (l *OutputLearner) shapeOf(q queuedResult) (shape *ResultShape, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("learn from a result: panic", "server", q.tool.Server, "tool", q.tool.Tool)
			shape, ok = nil, false
		}
	}()
	return ShapeOfResult(q.result)
}

// storeShape merges a shape into the stored schema of a tool.
func (l *OutputLearner) storeShape(ctx context.Context, tool LearnedTool, definition string, shape *ResultShape,
	results int) {
	more := shape.Schema()
	err := l.store.UpdateLearnedOutput(ctx, tool, definition, results, func(stored json.RawMessage) json.RawMessage {
		merged, ok := ParseShape(more)
		if !ok {
			return nil
		}
		if before, ok := ParseShape(stored); ok { // a damaged schema is replaced
			merged = MergeShapes(before, merged)
		}
		schema := merged.Schema()
		if string(schema) == string(stored) {
			return schema
		}
		// The check is made of what is stored, without the parts that do not fit.
		if merged, ok = ParseShape(schema); !ok {
			return nil
		}
		return l.check.Apply(merged).Schema()
	})
	if err != nil {
		l.log.Error("store a learned output", "server", tool.Server, "tool", tool.Tool, "err", err)
	}
}
