//lint:file-ignore SA1019 roots, sampling and logging are deprecated and still have to be carried

package mcptest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type progressInput struct {
	Steps int `json:"steps"`
}

type logInput struct {
	Level string `json:"level,omitempty"`
	Text  string `json:"text"`
}

type messageInput struct {
	Message string `json:"message,omitempty"`
}

type promptInput struct {
	Prompt string `json:"prompt"`
}

// addTalkingTools adds the tools that send notifications or ask the client during a call. They ask with an
// input_required result. For a client of the stateful generation, the SDK converts that result to a request.
func addTalkingTools(s *mcp.Server) {
	addTool(s, "progress", "Notifies progress, step by step.", notifyProgress)
	addTool(s, "log", "Writes a log line.", func(ctx context.Context, req *mcp.CallToolRequest,
		in logInput) (*mcp.CallToolResult, error) {
		level := mcp.LoggingLevel(in.Level)
		if level == "" {
			level = "info"
		}
		return textResult("logged"), req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level,
			Logger: "everything", Data: in.Text})
	})
	addTool(s, "ask-elicitation", "Asks the user for a name and greets them.", askElicitation)
	addTool(s, "ask-sampling", "Asks the client's model.", askSampling)
	addTool(s, "ask-roots", "Lists the client's roots.", askRoots)
}

func notifyProgress(ctx context.Context, req *mcp.CallToolRequest, in progressInput) (*mcp.CallToolResult, error) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return textResult("no progress token was sent"), nil
	}
	for i := range in.Steps {
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(i + 1), Total: float64(in.Steps),
			Message: fmt.Sprintf("step %d", i+1),
		})
		if err != nil {
			return nil, err
		}
	}
	return textResult("%d steps", in.Steps), nil
}

func inputRequired(name string, request mcp.InputRequest) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{name: request}, RequestState: "asked " + name}
}

func askElicitation(_ context.Context, req *mcp.CallToolRequest, in messageInput) (*mcp.CallToolResult, error) {
	answer, ok := req.Params.InputResponses["name"].(*mcp.ElicitResult)
	switch {
	case !ok:
		message := in.Message
		if message == "" {
			message = "Who are you?"
		}
		return inputRequired("name", &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: map[string]any{
			"type":       "object",
			"properties": map[string]any{"name": map[string]any{"type": "string"}},
			"required":   []string{"name"},
		}}), nil
	case answer.Action == "accept":
		return textResult("hello, %v", answer.Content["name"]), nil
	}
	return textResult("the user chose to %s", answer.Action), nil
}

func askSampling(_ context.Context, req *mcp.CallToolRequest, in promptInput) (*mcp.CallToolResult, error) {
	switch answer := req.Params.InputResponses["answer"].(type) {
	case *mcp.CreateMessageResult:
		return textResult("%s says %s", answer.Model, textOf(answer.Content)), nil
	case *mcp.CreateMessageWithToolsResult:
		return textResult("%s says %s", answer.Model, textOf(answer.Content...)), nil
	}
	return inputRequired("answer", &mcp.CreateMessageParams{
		MaxTokens: 100,
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Prompt}}},
	}), nil
}

func askRoots(_ context.Context, req *mcp.CallToolRequest, _ noInput) (*mcp.CallToolResult, error) {
	answer, ok := req.Params.InputResponses["roots"].(*mcp.ListRootsResult)
	if !ok {
		return inputRequired("roots", &mcp.ListRootsParams{}), nil
	}
	var uris []string
	for _, r := range answer.Roots {
		uris = append(uris, r.URI)
	}
	return textResult("roots: %q", uris), nil
}

func textOf(content ...mcp.Content) string {
	for _, c := range content {
		if t, ok := c.(*mcp.TextContent); ok {
			return t.Text
		}
	}
	return ""
}

// waitFor waits ms milliseconds, or until ctx ends.
func waitFor(ctx context.Context, ms int) error {
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// onOff is a switch for concurrent calls.
type onOff struct {
	mu sync.Mutex
	on bool
}

// flip changes the state and returns the new state.
func (o *onOff) flip() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.on = !o.on
	return o.on
}
