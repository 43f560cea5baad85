package deck

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
)

// An OutputLearner learns the output types of tools from their results.
type OutputLearner = toolsearch.OutputLearner

// A LearnedOutput is the type of a tool's output, as learned from its results.
type LearnedOutput = toolsearch.LearnedOutput

const (
	// firstSamples is the number of results of a tool from which the deck learns at first. Then it learns from one result
	// in sampleInterval.
	firstSamples, sampleInterval = 5, 100
)

// An outputSampler selects the results of one tool from which its output type is learned. A tool with a changed
// definition gets a new one.
type outputSampler struct{ results atomic.Uint64 }

// selects reports whether the deck learns from the next result.
func (s *outputSampler) selects() bool {
	n := s.results.Add(1)
	return n <= firstSamples || n%sampleInterval == 0
}

// learnOutput submits a result of a server's tool to the learner, if the tool has no output schema and the result is
// selected. The result is the one that the caller gets, without the marks of foreign texts. learnOutput does not read
// the result.
func (d *Deck) learnOutput(s *callState, result json.RawMessage) {
	if d.outputs == nil || s.target.sampler == nil || s.call.Method != mcp.MethodToolsCall ||
		len(result) > toolsearch.MaxLearnedResult || !s.target.sampler.selects() {
		return
	}
	if m := d.view.Load().server(s.target.spec.Server); m != nil {
		d.outputs.Submit(learnedTool(m, s.target.spec.Tool, s.target.definition), result)
	}
}

func learnedTool(m *serverState, tool string, definition json.RawMessage) toolsearch.LearnedTool {
	return toolsearch.LearnedTool{Server: m.ID, ConfigHash: m.ConfigHash, Tool: tool, Definition: definition}
}

// LearnedOutput returns the output type that was learned for a tool which the caller may call. ok is false if the tool
// has an output schema, if nothing was learned, or if the caller does not see the tool.
func (d *Deck) LearnedOutput(ctx context.Context, caller drawbridge.Caller, name drawbridge.CardName) (
	out LearnedOutput, ok bool) {
	v := d.view.Load()
	it := v.tools.findByName(caller, string(name))
	if it == nil || it.sampler == nil {
		return LearnedOutput{}, false
	}
	m := v.server(it.spec.Server)
	if m == nil {
		return LearnedOutput{}, false
	}
	return d.outputs.Output(ctx, learnedTool(m, it.spec.Tool, it.offer.Raw))
}
