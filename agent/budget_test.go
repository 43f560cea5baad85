package agent_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

var price = drawbridge.ModelPrice{Input: 1, Output: 10}

// TestBudgetEndsTheRun holds which limit ends a run, and before which request.
func TestBudgetEndsTheRun(t *testing.T) {
	for _, tt := range []struct {
		name     string
		limits   agent.Amount
		price    drawbridge.ModelPrice
		requests int
		reason   string
	}{
		{"no limits", agent.Amount{}, drawbridge.ModelPrice{}, 20, "limit of turns"},
		{"turns", agent.Amount{Turns: 3}, price, 3, "the limit of requests to models is reached: 3"},
		// Each turn uses 110 tokens. The request after the last needs its input and 256 tokens of output at least.
		{"tokens", agent.Amount{Tokens: 2000}, price, 15, "the limit is 2000 tokens"},
		{"dollars", agent.Amount{Dollars: 0.01}, price, 20, "limit of turns"},
		{"few dollars", agent.Amount{Dollars: 0.004}, price, 7, "the limit is $0.0040"},
		{"unknown price", agent.Amount{Dollars: 100}, drawbridge.ModelPrice{Input: 1}, 0,
			"the price of test/script is not known, so the limit of $100.00 cannot be kept"},
		// The first refusal is told to the model; the second ends the run.
		{"calls", agent.Amount{Calls: 2}, price, 4, "the limit of calls of tools is reached: 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			tools := &box{call: func(context.Context, agent.Identity, drawbridge.ToolCall, func(agent.CallUpdate)) (
				agent.CallOutcome, error) {
				n++
				return textOutcome(strings.Repeat("x", n)), nil
			}}
			var all []drawbridge.ModelResponse
			for range 30 {
				all = append(all, calls("echo"))
			}
			model := answers(all...)
			model.info.Price = tt.price
			budget := agent.NewBudget(tt.limits)
			s := open(t, agent.Options{Model: model, Tools: tools, Budget: budget, MaxTurns: 20})
			_, err := s.Run(t.Context(), prompt("x"), nil)
			if err == nil || !strings.Contains(err.Error(), tt.reason) || len(model.requests) != tt.requests {
				t.Errorf("after %d requests: %v", len(model.requests), err)
			}
			used := budget.Used()
			if l := tt.limits; l.Tokens > 0 && used.Tokens > l.Tokens || l.Dollars > 0 && used.Dollars > l.Dollars ||
				l.Calls > 0 && used.Calls > l.Calls || l.Turns > 0 && used.Turns > l.Turns {
				t.Errorf("the budget has used %+v of %+v", used, l)
			}
			for i, r := range model.requests {
				if limited := tt.limits.Tokens > 0 || tt.limits.Dollars > 0; (r.MaxOutput > 0) != limited {
					t.Errorf("request %d has at most %d tokens", i, r.MaxOutput)
				}
			}
		})
	}
}

// TestBudgetIsShared has many goroutines reserve and commit: the sum never exceeds the limits.
func TestBudgetIsShared(t *testing.T) {
	limits := agent.Amount{Tokens: 10_000, Dollars: 0.05, Turns: 400, Calls: 50}
	b := agent.NewBudget(limits)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 200 {
				r, output, err := b.ReserveTurn(agent.TurnEstimate{Model: "m", Price: price, Input: 20, Output: 60, Least: 10})
				if err != nil {
					if _, ok := errors.AsType[*agent.BudgetError](err); !ok {
						t.Error(err)
					}
					continue
				}
				switch rand.IntN(3) {
				case 0:
					r.Release()
				default:
					r.Commit(agent.Amount{Tokens: 20 + rand.Int64N(output+1), Turns: 1, Dollars: 0.0001})
				}
				r.Commit(agent.Amount{Tokens: 1 << 40}) // has ended already
				if call, err := b.Reserve(agent.Amount{Calls: 1}); err == nil {
					call.Commit(agent.Amount{Calls: 1})
				}
			}
		})
	}
	all.Wait()
	if used := b.Used(); used.Tokens > limits.Tokens || used.Dollars > limits.Dollars || used.Turns > limits.Turns ||
		used.Calls != limits.Calls {
		t.Errorf("used %+v of %+v", used, limits)
	}
}

// TestBudgetOfFailedRequests holds what a request counts that failed.
func TestBudgetOfFailedRequests(t *testing.T) {
	for _, tt := range []struct {
		name    string
		text    string
		err     error
		counted bool
	}{
		{"refused", "", &drawbridge.ModelError{Code: drawbridge.ModelRateLimited}, false},
		{"broken", "some", &drawbridge.ModelError{Code: drawbridge.ModelBroken}, true},
		{"broken at once", "", &drawbridge.ModelError{Code: drawbridge.ModelBroken}, true},
		{"other", "", errors.New("reset"), true},
	} {
		b := &agent.Budget{}
		model := &script{answer: func(_ context.Context, _ int, _ drawbridge.ModelRequest, on func(drawbridge.ModelDelta)) (
			drawbridge.ModelResponse, error) {
			on(drawbridge.ModelDelta{Text: tt.text})
			return drawbridge.ModelResponse{}, tt.err
		}}
		_, _ = open(t, agent.Options{Model: model, Budget: b}).Run(t.Context(), prompt("x"), nil)
		if used := b.Used(); (used.Tokens > 0) != tt.counted {
			t.Errorf("%s: %+v", tt.name, used)
		}
	}
}

// TestPriceOfAFallback holds what an answer costs that another model wrote.
func TestPriceOfAFallback(t *testing.T) {
	for _, tt := range []struct {
		price drawbridge.ModelPrice
		cost  float64
		told  bool
	}{
		{drawbridge.ModelPrice{}, 0.0002, true},
		{drawbridge.ModelPrice{Input: 2, Output: 20}, 0.0004, false},
	} {
		answer := says("x")
		answer.Model, answer.Price = "other/model", tt.price
		model := answers(answer)
		model.info.Price = price
		s := open(t, agent.Options{Model: model, Budget: agent.NewBudget(agent.Amount{Dollars: 1})})
		result, events := run(t, s, "x", agent.Completed)
		if diff := result.Cost - tt.cost; diff > 1e-12 || diff < -1e-12 || slices.Contains(kinds(events), agent.Notice) != tt.told {
			t.Errorf("the cost is %g, the events are %v", result.Cost, kinds(events))
		}
	}
}

// TestBudgetOfAResumedSession: what was used before counts.
func TestBudgetOfAResumedSession(t *testing.T) {
	history := agent.NewMemoryHistory()
	model := answers(calls("echo"), says("a"))
	model.info.Price = price
	run(t, open(t, agent.Options{Model: model, Tools: &box{}, History: history}), "x", agent.Completed)
	b := agent.NewBudget(agent.Amount{Turns: 2})
	s := open(t, agent.Options{Model: model, History: history, Budget: b})
	if used := b.Used(); used.Tokens != 220 || used.Turns != 2 || used.Calls != 1 || used.Dollars < 0.0003 {
		t.Errorf("used %+v", used)
	}
	run(t, s, "y", agent.OverBudget)
}

// TestBudgetOfCallsWithinCalls has a call that makes others: each is taken from the budget before, and none is made when
// the budget is used up or the history cannot be written.
func TestBudgetOfCallsWithinCalls(t *testing.T) {
	for _, tt := range []struct {
		name     string
		calls    int64
		breaks   bool
		made     int
		used     int64
		refusals string
	}{
		{"no limit", 0, false, 5, 6, ""},
		{"enough", 6, false, 5, 6, ""},
		{"too few", 3, false, 2, 3, "budget: the limit of calls of tools is reached: 3"},
		{"broken history", 6, true, 0, 1, "write the history: the disk is full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tools, made := &box{}, 0
			history := &fullHistory{History: agent.NewMemoryHistory(), full: tt.breaks}
			tools.call = func(ctx context.Context, who agent.Identity, _ drawbridge.ToolCall, update func(agent.CallUpdate)) (agent.CallOutcome, error) {
				out := textOutcome("")
				for i := range 5 {
					id := strconv.Itoa(i)
					if who.CallsLimited {
						a, err := tools.ask(ctx, id, update, agent.CallUpdate{Reserve: &agent.CallReservation{ID: id, Tool: "inner"}})
						if err != nil || !a.Allow {
							if a.Reason != tt.refusals {
								t.Errorf("refused: %q, %v", a.Reason, err)
							}
							continue
						}
					} else {
						out.ScriptCalls++
					}
					made++
				}
				return out, nil
			}
			budget := agent.NewBudget(agent.Amount{Calls: tt.calls})
			s := open(t, agent.Options{Model: answers(calls("echo"), says("x")), Tools: tools, History: history, Budget: budget})
			run(t, s, "go", agent.Completed)
			if used := budget.Used().Calls; made != tt.made || used != tt.used {
				t.Errorf("%d calls were made, %d are counted", made, used)
			}
			again := agent.NewBudget(agent.Amount{Calls: 100})
			open(t, agent.Options{Model: answers(), History: history, Budget: again})
			if used := again.Used().Calls; used != tt.used {
				t.Errorf("the resumed session counts %d calls", used)
			}
		})
	}
}

// A fullHistory refuses the entries of calls within calls.
type fullHistory struct {
	agent.History
	full bool
}

func (h *fullHistory) Append(ctx context.Context, e agent.Entry) error {
	if h.full && e.Kind == agent.ScriptCallEntry {
		return errors.New("the disk is full")
	}
	return h.History.Append(ctx, e)
}
