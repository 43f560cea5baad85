package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/google/go-cmp/cmp"
)

// working is a model that calls echo until it has made so many calls, and that writes summaries.
func working(turns int, window int, summary func() (drawbridge.ModelResponse, error)) *script {
	made := 0
	return &script{info: drawbridge.ModelInfo{Provider: "test", Name: "script", Window: window}, answer: func(
		_ context.Context, _ int, r drawbridge.ModelRequest, _ func(drawbridge.ModelDelta)) (
		drawbridge.ModelResponse, error) {
		if strings.HasPrefix(r.Instructions, "You write the summary") {
			return summary()
		}
		if made++; made > turns {
			return drawbridge.ModelResponse{Message: says("done").Message}, nil
		}
		// The provider does not count, so that the estimate decides.
		// Calls are about as long as their results, so that the limit may fall between a call and its result.
		return drawbridge.ModelResponse{Message: calls(fmt.Sprintf(`echo {"n":%d,"pad":"%s"}`, made,
			strings.Repeat("p", 800+made*37%400))).Message}, nil
	}}
}

// padded are tools whose results have 250 to 650 tokens.
func padded() *box {
	random := rand.New(rand.NewPCG(1, 2))
	return &box{call: func(_ context.Context, _ agent.Identity, c drawbridge.ToolCall, _ func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		return textOutcome(string(c.Arguments) + strings.Repeat(" x", random.IntN(800))), nil
	}}
}

// TestCondense has a conversation that outgrows the window several times: no request is too long, calls stand with
// their results, the last messages stay, and the history keeps all.
func TestCondense(t *testing.T) {
	const window, turns = 16_000, 60
	summaries := 0
	model := working(turns, window, func() (drawbridge.ModelResponse, error) {
		summaries++
		return says(fmt.Sprint("summary ", summaries)), nil
	})
	history := agent.NewMemoryHistory()
	s := open(t, agent.Options{Model: model, Tools: padded(), History: history})
	_, events := run(t, s, "the task", agent.Completed)
	condensed := 0
	for _, e := range events {
		if e.Kind == agent.Condensed {
			condensed++
		}
	}
	if summaries < 3 || condensed != summaries {
		t.Errorf("%d summaries, %d events", summaries, condensed)
	}
	for i, r := range model.requests {
		checkPairs(t, i, r.Messages)
		size := 0
		for _, m := range r.Messages {
			for _, p := range m.Parts {
				size += len(p.Text)
				if p.ToolResult != nil {
					size += len(p.ToolResult.Text)
				}
			}
		}
		if tokens := size / 4; tokens > window*3/4+600 {
			t.Errorf("request %d has about %d tokens", i, tokens)
		}
	}
	last := model.requests[len(model.requests)-1].Messages
	if !strings.HasSuffix(last[0].Text(), fmt.Sprint("summary ", summaries)) || len(last) < 10 {
		t.Errorf("the last request begins with %q and has %d messages", last[0].Text(), len(last))
	}
	results := 0
	for _, e := range entries(t, history) {
		if e.Kind == agent.ResultEntry {
			results++
		}
	}
	if results != turns {
		t.Errorf("the history has %d results", results)
	}
	again := open(t, agent.Options{Model: answers(says("x")), Tools: padded(), History: history})
	if diff := cmp.Diff(s.Snapshot().Messages, again.Snapshot().Messages); diff != "" {
		t.Error(diff)
	}
}

// checkPairs checks that each message with calls is followed by their results, and that no message has other results.
func checkPairs(t *testing.T, request int, messages []drawbridge.Message) {
	t.Helper()
	var open []string
	for i, m := range messages {
		var results, next []string
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				results = append(results, p.ToolResult.CallID)
			}
			if p.ToolCall != nil {
				next = append(next, p.ToolCall.ID)
			}
		}
		if diff := cmp.Diff(open, results); diff != "" {
			t.Errorf("request %d, message %d: %s", request, i, diff)
		}
		open = next
	}
	if open != nil {
		t.Errorf("request %d ends with calls", request)
	}
}

// TestCondenseFails has a summary that fails: the run ends with an error, and nothing is lost.
func TestCondenseFails(t *testing.T) {
	for name, tt := range map[string]struct {
		text, want string
		err        error
	}{
		"error": {err: errors.New("no summary today"), want: "condense the conversation: no summary today"},
		"empty": {text: " \n", want: "condense the conversation: the model wrote no summary"},
	} {
		t.Run(name, func(t *testing.T) {
			fail := true
			model := working(40, 16_000, func() (drawbridge.ModelResponse, error) {
				if fail {
					return says(tt.text), tt.err
				}
				return says("better"), nil
			})
			s := open(t, agent.Options{Model: model, Tools: padded()})
			_, err := s.Run(t.Context(), prompt("x"), nil)
			if err == nil || err.Error() != tt.want {
				t.Fatalf("the run ended with %v", err)
			}
			before := s.Snapshot().Messages
			fail = false
			if result, err := s.Run(t.Context(), nil, nil); err != nil || result.Text != "done" {
				t.Errorf("%+v, %v", result, err)
			}
			if before < 20 {
				t.Errorf("%d messages were left", before)
			}
		})
	}
}

// TestContextTooLong has a model that refuses a request as too long: the session condenses once and asks again.
func TestContextTooLong(t *testing.T) {
	long := &drawbridge.ModelError{Code: drawbridge.ModelContextTooLong, Model: "test/script"}
	for name, always := range map[string]bool{"once": false, "always": true} {
		t.Run(name, func(t *testing.T) {
			summaries := 0
			model := working(20, 0, func() (drawbridge.ModelResponse, error) {
				summaries++
				return says("short"), nil
			})
			inner, refused := model.answer, 0
			model.answer = func(ctx context.Context, n int, r drawbridge.ModelRequest, on func(drawbridge.ModelDelta)) (
				drawbridge.ModelResponse, error) {
				if summary := strings.HasPrefix(r.Instructions, "You write"); !summary && n > 17 && (always || refused == 0) {
					refused++
					return drawbridge.ModelResponse{}, long
				}
				return inner(ctx, n, r, on)
			}
			s := open(t, agent.Options{Model: model, Tools: padded()})
			_, err := s.Run(t.Context(), prompt("x"), nil)
			switch {
			case summaries != 1:
				t.Errorf("there are %d summaries", summaries)
			case !always && (err != nil || refused != 1):
				t.Errorf("refused %d times: %v", refused, err)
			case always && (!errors.Is(err, long) || refused != 2):
				t.Errorf("refused %d times: %v", refused, err)
			}
		})
	}
}

func TestCondenseByHand(t *testing.T) {
	model := working(20, 0, func() (drawbridge.ModelResponse, error) { return says("short"), nil })
	s := open(t, agent.Options{Model: model, Tools: padded(), ManualCondense: true})
	if err := s.Condense(t.Context(), nil); !errors.Is(err, agent.ErrTooShort) {
		t.Errorf("an empty conversation: %v", err)
	}
	run(t, s, "x", agent.Completed)
	before := s.Snapshot()
	if err := s.Condense(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	after := s.Snapshot()
	if after.Tokens >= before.Tokens || after.Messages >= before.Messages || after.AutoCondense {
		t.Errorf("before %+v, after %+v", before, after)
	}
	text := model.requests[len(model.requests)-1].Messages[0].Text()
	if !strings.HasPrefix(text, "Person: x\n\nCall of echo: {\"n\":1,\"pad\":\"ppp") {
		t.Errorf("the model summarises %.100q", text)
	}
}
