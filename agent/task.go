package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// depthOf returns the number of sub-agents in a path.
func depthOf(path string) int {
	if path == "" {
		return 0
	}
	return strings.Count(path, "/") + 1
}

// runTask runs a sub-agent and answers the call that asked for it. call is the ID of the call's entry.
func (c *conversation) runTask(ctx context.Context, call string, task TaskRequest) {
	report := c.runSubAgent(ctx, call, task)
	if ctx.Err() != nil {
		return // the call has ended
	}
	content, err := json.Marshal(report)
	if err == nil {
		err = c.s.tools.Answer(ctx, Answer{ID: task.ID, Allow: report.Outcome == Completed, Content: content})
	}
	if err != nil && ctx.Err() == nil {
		c.emit(Event{Kind: Notice, Text: fmt.Sprintf("pass on the report of a sub-agent: %v", err)})
	}
}

// runSubAgent runs a sub-agent in a conversation of its own and returns its report.
func (c *conversation) runSubAgent(ctx context.Context, call string, task TaskRequest) TaskReport {
	if c.depth >= MaxDepth {
		return TaskReport{Error: fmt.Sprintf("a sub-agent at depth %d cannot start another one", c.depth)}
	}
	if strings.TrimSpace(task.Objective) == "" {
		return TaskReport{Error: "the task has no objective"}
	}
	child := c.newChild(call, task)
	rights := Rights{Mode: c.s.mode(), Tools: child.tools, Depth: child.depth}
	if _, err := child.append(ctx, Entry{Kind: AgentEntry, Text: task.Objective, Rights: &rights}); err != nil {
		return TaskReport{Outcome: Failed, Error: err.Error()}
	}
	result, err := child.run(ctx, []drawbridge.MessagePart{{Text: task.Objective}}, child.runID, c.events)
	report := TaskReport{Report: result.Text, Outcome: result.Outcome}
	if err != nil {
		report.Error = err.Error()
	}
	return report
}

// newChild returns the conversation of a sub-agent, whose rights are those of its parent or fewer.
func (c *conversation) newChild(call string, task TaskRequest) *conversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.children++
	path := strconv.Itoa(c.children)
	if c.path != "" {
		path = c.path + "/" + path
	}
	return &conversation{s: c.s, path: path, depth: c.depth + 1, tools: narrowed(c.tools, task.Tools), runID: c.runID,
		head: call}
}

// A keptQuestion is a question whose answer the session itself acts on.
type keptQuestion struct {
	Question
	from   *conversation
	events *emitter // of the run
}

// keepQuestion keeps a question until a person answers it.
func (s *Session) keepQuestion(q keptQuestion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.questions == nil {
		s.questions = map[string]keptQuestion{}
	}
	s.questions[q.ID] = q
}

// dropQuestions forgets the questions of a call that ended.
func (s *Session) dropQuestions(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		delete(s.questions, id)
	}
}

// samplingParams are the params of sampling/createMessage that are used. A message's content is one block or several.
type samplingParams struct {
	SystemPrompt string `json:"systemPrompt"`
	MaxTokens    int    `json:"maxTokens"`
	Messages     []struct {
		Role    drawbridge.Role `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// maxSample limits the tokens of an answer to a server.
const maxSample = 4096

// sample asks the session's model for the answer that a server wants, without tools and without the conversation. It
// returns the result of sampling/createMessage.
func (c *conversation) sample(ctx context.Context, q Question) (json.RawMessage, error) {
	var params samplingParams
	if err := json.Unmarshal(q.Arguments, &params); err != nil {
		return nil, fmt.Errorf("read the sampling request of %s: %w", q.Server, err)
	}
	r := drawbridge.ModelRequest{Instructions: params.SystemPrompt, MaxOutput: maxSample}
	if params.MaxTokens > 0 {
		r.MaxOutput = min(params.MaxTokens, maxSample)
	}
	for _, m := range params.Messages {
		if m.Role != drawbridge.AssistantRole {
			m.Role = drawbridge.UserRole
		}
		content := m.Content
		if !strings.HasPrefix(strings.TrimSpace(string(content)), "[") {
			content = json.RawMessage("[" + string(content) + "]")
		}
		block := drawbridge.Result{Raw: json.RawMessage(`{"content":` + string(content) + `}`)}
		r.Messages = append(r.Messages, drawbridge.Message{Role: m.Role,
			Parts: []drawbridge.MessagePart{{Text: clampMiddle(block.Text(), c.s.maker.limit)}}})
	}
	if len(r.Messages) == 0 {
		return nil, errors.New("read the sampling request: it has no messages")
	}
	model, _ := c.s.current()
	// The conversation's own measurement is of another text.
	own := &conversation{s: c.s}
	response, cost, err := own.ask(ctx, model, r, false)
	if err != nil {
		return nil, err
	}
	text := response.Message.Text()
	if _, err := c.append(ctx, Entry{Kind: AnswerEntry, Text: text, Model: response.Model, Usage: &response.Usage,
		Cost: cost}); err != nil {
		return nil, err
	}
	stop := "endTurn"
	if response.Stop == drawbridge.StopMaxOutput {
		stop = "maxTokens"
	}
	return json.Marshal(map[string]any{"role": "assistant", "model": response.Model, "stopReason": stop,
		"content": map[string]any{"type": "text", "text": text}})
}
