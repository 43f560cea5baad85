package agent

import (
	"fmt"
	"math"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// roundingError is by how much sums of dollars may be wrong.
const roundingError = 1 + 1e-9

// An Amount is what a session uses, or may use at most. In limits, 0 means no limit.
type Amount struct {
	// Tokens counts input and output tokens.
	Tokens int64
	// Dollars is in US dollars.
	Dollars float64
	// Turns counts requests to models, and Calls counts calls of tools.
	Turns, Calls int64
}

// plus returns the sum of a and b.
func (a Amount) plus(b Amount) Amount {
	return Amount{a.Tokens + b.Tokens, a.Dollars + b.Dollars, a.Turns + b.Turns, a.Calls + b.Calls}
}

// minus returns the difference of a and b.
func (a Amount) minus(b Amount) Amount {
	return Amount{a.Tokens - b.Tokens, a.Dollars - b.Dollars, a.Turns - b.Turns, a.Calls - b.Calls}
}

// A BudgetError says that a limit would be exceeded, or that it cannot be kept.
type BudgetError struct {
	// Limit is "tokens", "dollars", "turns" or "calls"; empty for an amount that is not valid.
	Limit string
	// Reason says what is missing.
	Reason string
}

// Error returns the reason.
func (e *BudgetError) Error() string { return "budget: " + e.Reason }

// A Budget limits what a session may use, together with its sub-agents and scripts. An amount is reserved before it is
// used, and committed when it is known. The zero value has no limits. Its methods may be called from several
// goroutines.
type Budget struct {
	limits Amount

	// mu guards the fields below.
	mu             sync.Mutex
	used, reserved Amount
}

// NewBudget returns a budget with limits.
func NewBudget(limits Amount) *Budget { return &Budget{limits: limits} }

// Limits returns the limits.
func (b *Budget) Limits() Amount { return b.limits }

// Used returns what was committed.
func (b *Budget) Used() Amount {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Add commits an amount that was not reserved, such as what a session had used before it was resumed.
func (b *Budget) Add(used Amount) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = b.used.plus(used)
}

// A Reservation is an amount that is set aside. It ends with Commit or Release; further calls do nothing.
type Reservation struct {
	budget *Budget
	amount Amount
	once   sync.Once
}

// Commit replaces the reserved amount with the used amount.
func (r *Reservation) Commit(used Amount) {
	r.once.Do(func() {
		r.budget.mu.Lock()
		defer r.budget.mu.Unlock()
		r.budget.reserved = r.budget.reserved.minus(r.amount)
		r.budget.used = r.budget.used.plus(used)
	})
}

// Release returns the reserved amount to the budget.
func (r *Reservation) Release() { r.Commit(Amount{}) }

// Reserve sets an amount aside. The error is a *BudgetError.
func (b *Budget) Reserve(a Amount) (*Reservation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reserve(a)
}

// reserve sets an amount aside. The caller holds mu.
func (b *Budget) reserve(a Amount) (*Reservation, error) {
	taken := b.used.plus(b.reserved)
	want := taken.plus(a)
	refuse := func(limit, format string, args ...any) (*Reservation, error) {
		return nil, &BudgetError{Limit: limit, Reason: fmt.Sprintf(format, args...)}
	}
	l := b.limits
	switch {
	case a.Tokens < 0 || a.Turns < 0 || a.Calls < 0 || !(a.Dollars >= 0):
		return refuse("", "an amount cannot be negative")
	case l.Tokens > 0 && a.Tokens > 0 && want.Tokens > l.Tokens:
		return refuse("tokens", "the limit is %d tokens, %d are used, %d more are needed", l.Tokens, taken.Tokens, a.Tokens)
	case l.Dollars > 0 && a.Dollars > 0 && !(want.Dollars <= l.Dollars*roundingError):
		return refuse("dollars", "the limit is $%.4f, $%.4f are used, $%.4f more are needed", l.Dollars, taken.Dollars,
			a.Dollars)
	case l.Turns > 0 && a.Turns > 0 && want.Turns > l.Turns:
		return refuse("turns", "the limit of requests to models is reached: %d", l.Turns)
	case l.Calls > 0 && a.Calls > 0 && want.Calls > l.Calls:
		return refuse("calls", "the limit of calls of tools is reached: %d", l.Calls)
	}
	b.reserved = b.reserved.plus(a)
	return &Reservation{budget: b, amount: a}, nil
}

// A TurnEstimate is what a request to a model may use.
type TurnEstimate struct {
	// Model is the model as "provider/name", and Price its price.
	Model string
	Price drawbridge.ModelPrice
	// Input is the estimated number of input tokens. The answer has at most Output tokens, and is of no use with fewer
	// than Least.
	Input, Output, Least int64
}

// ReserveTurn sets aside what a request to a model may use. output is how many tokens the answer may have: e.Output, or
// fewer if the budget has no more. The error is a *BudgetError. With a limit in dollars, a model without a known price
// is refused.
func (b *Budget) ReserveTurn(e TurnEstimate) (r *Reservation, output int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	output = e.Output
	taken := b.used.plus(b.reserved)
	if b.limits.Tokens > 0 {
		output = min(output, b.limits.Tokens-taken.Tokens-e.Input)
	}
	if b.limits.Dollars > 0 {
		if !e.Price.IsKnown() {
			return nil, 0, &BudgetError{Limit: "dollars", Reason: fmt.Sprintf("the price of %s is not known, so the limit "+
				"of $%.2f cannot be kept: set the price of the model, or remove the limit", e.Model, b.limits.Dollars)}
		}
		left := b.limits.Dollars - taken.Dollars - inputCost(e)
		output = min(output, int64(math.Max(0, left*1e6/e.Price.Output)))
	}
	output = max(output, min(e.Least, e.Output))
	r, err = b.reserve(Amount{Tokens: e.Input + output, Turns: 1,
		Dollars: inputCost(e) + float64(output)*e.Price.Output/1e6})
	return r, output, err
}

// inputCost returns the greatest price of the input: tokens may be written to the provider's cache, which costs more.
func inputCost(e TurnEstimate) float64 {
	return float64(e.Input) * max(e.Price.Input, e.Price.CacheWrite) / 1e6
}
