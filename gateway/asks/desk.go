// Package asks has calls wait for a person: it keeps in the store what waits, where any process that the person starts finds
// it, and lets a call go on when they said yes there.
//
// It promises that a yes is for the call as the person saw it: for this caller, this card as it is defined, these arguments;
// that it is used up in one transaction before the call is sent, so that a process which dies in between has used it up; and
// that whatever goes wrong is a no. The caller is told that somebody is asked, and never of what or by which name: nothing
// that it can send answers.
package asks

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

const (
	// DefaultTimeout is how long a call waits for a person where nobody says otherwise.
	DefaultTimeout = 5 * time.Minute
	// mostWaiting is how many calls of one caller wait at the same time.
	mostWaiting = 16
	// lookEvery is how often it is looked for an answer, lease for how long a process says that it waits.
	lookEvery = 250 * time.Millisecond
	lease     = 15 * time.Second
	// endTimeout bounds what is done when a call is over.
	endTimeout = 5 * time.Second
)

// A Desk asks people about calls.
type Desk struct {
	// DB is where they answer.
	DB *store.DB
	// Logger is told of what nobody else hears of.
	Logger *slog.Logger
	// Timeout is how long a call waits; 0 is DefaultTimeout.
	Timeout time.Duration
	// every is how often it is looked for an answer; 0 is lookEvery.
	every time.Duration
}

var _ deck.Approver = (*Desk)(nil)

// Approve waits for a person, or finds that they granted such a call before.
func (d *Desk) Approve(ctx context.Context, r deck.ApprovalRequest) (deck.ApprovalAnswer, error) {
	a, err := askOf(r)
	if err != nil {
		return deck.ApprovalAnswer{}, refused(r, err, "let it be done in smaller steps")
	}
	grant, granted, err := d.DB.UseGrant(ctx, a)
	switch {
	case err != nil:
		return deck.ApprovalAnswer{}, d.failed(ctx, r, err)
	case granted:
		return deck.ApprovalAnswer{ID: grant.ID, By: grant.By}, nil
	}
	return d.ask(ctx, r, a)
}

// ask has the call wait for an answer of its own.
func (d *Desk) ask(ctx context.Context, r deck.ApprovalRequest, a store.Ask) (answer deck.ApprovalAnswer, err error) {
	a.ID = strings.ToLower(rand.Text()[:8])
	err = d.DB.Ask(ctx, a, d.timeout(), lease, mostWaiting)
	switch code := codeOf(err); {
	case code == drawbridge.RateLimited:
		f := refused(r, fmt.Errorf("it needs a person's approval, and %d calls of this caller wait for one already", mostWaiting),
			"wait until they are answered, then call again")
		f.Code = drawbridge.RateLimited
		return answer, f
	case code == drawbridge.PolicyBlocked:
		return answer, refused(r, errDenied, "do not call this again unless the user asks for it")
	case err != nil:
		return answer, d.failed(ctx, r, err)
	}
	defer d.drop(ctx, a.ID)
	answer.ID = a.ID
	answer.By, err = d.await(ctx, r, a.ID)
	return answer, err
}

var (
	errDenied  = errors.New("a person said no")
	errChanged = errors.New("what was to be called changed while a person was asked")
	errGone    = errors.New("nobody answers any more: what waited was cleared away")
)

func (d *Desk) timeout() time.Duration { return cmp.Or(d.Timeout, DefaultTimeout) }

// await waits for the answer, says now and then that it still does, and gives who answered.
func (d *Desk) await(ctx context.Context, r deck.ApprovalRequest, id string) (by string, err error) {
	end := time.NewTimer(d.timeout())
	defer end.Stop()
	look := time.NewTicker(cmp.Or(d.every, lookEvery))
	defer look.Stop()
	told := teller{r: r}
	told.progress(ctx)
	for held := time.Now(); ; {
		select {
		case <-ctx.Done():
			return "", refused(r, fmt.Errorf("while a person was asked: %w", context.Cause(ctx)), "")
		case <-end.C:
			return "", d.late(r)
		case <-look.C:
		}
		switch answer, by, err := d.DB.AskAnswer(ctx, id); {
		case codeOf(err) == drawbridge.NotFound:
			return "", refused(r, errGone, "call again")
		case err != nil:
			return "", d.failed(ctx, r, err)
		case answer == store.Denied:
			return by, refused(r, errDenied, "do not call this again unless the user asks for it")
		case answer == store.Allowed:
			return by, d.take(ctx, r, id)
		}
		if time.Since(held) < lease/3 {
			continue
		}
		held = time.Now()
		if err := d.DB.HoldAsk(ctx, id, lease); err != nil {
			return "", d.failed(ctx, r, err)
		}
		told.progress(ctx)
	}
}

// take uses up a yes. After it the call is sent, or never is.
func (d *Desk) take(ctx context.Context, r deck.ApprovalRequest, id string) error {
	if !r.Still() {
		return refused(r, errChanged, "call again, and they are asked about what it is now")
	}
	taken, err := d.DB.TakeAsk(ctx, id)
	switch {
	case err != nil:
		return d.failed(ctx, r, err)
	case !taken:
		return d.late(r)
	}
	return nil
}

// late is the fault of a call that nobody answered in time.
func (d *Desk) late(r deck.ApprovalRequest) error {
	return refused(r, fmt.Errorf("it needs a person's approval, and nobody gave one within %s", d.timeout()),
		`have the user run "drawbridge ask --watch" in a terminal, then call again`)
}

// failed is the fault of a call that nobody could be asked about. What it was is for the log: it says where the store is.
func (d *Desk) failed(ctx context.Context, r deck.ApprovalRequest, err error) error {
	if ctx.Err() != nil {
		return refused(r, fmt.Errorf("while a person was asked: %w", context.Cause(ctx)), "")
	}
	d.Logger.Error("a person could not be asked, the call is refused", "card", r.Spec.Name, "err", err)
	return refused(r, errors.New("it needs a person's approval, and the store where they are asked does not answer"), "drawbridge doctor looks at it")
}

// drop forgets an ask when its call is over, however that came.
func (d *Desk) drop(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := d.DB.DropAsk(ctx, id); err != nil {
		d.Logger.Warn("what waited for a person is not cleared away", "err", err)
	}
}

// refused is the fault of a call that does not pass.
func refused(r deck.ApprovalRequest, why error, next string) *drawbridge.Fault {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked,
		Step: fmt.Sprintf("%s %.200s", r.Call.Method, r.Spec.Name), Err: why, Next: next,
	}
}

func codeOf(err error) drawbridge.FaultCode {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok {
		return f.Code
	}
	return ""
}

// A teller tells a caller that their call goes on, if they asked for that.
type teller struct {
	r     deck.ApprovalRequest
	times int
}

// progress tells a little of progress: less than the server will, since progress may not go back.
func (t *teller) progress(ctx context.Context) {
	token := wire.Get(t.r.Call.Params, "_meta", wire.MetaProgressToken)
	if token == nil || t.r.Call.Peer == nil {
		return
	}
	t.times++
	progress := fmt.Appendf(nil, "0.%06d", t.times)
	// Who does not hear it is gone, which ctx says too.
	_ = t.r.Call.Peer.Notify(ctx, wire.NoteProgress, wire.Apply(nil, wire.Put(token, "progressToken"), wire.Put(progress, "progress"),
		wire.Put(wire.Quote("a person is asked for approval: drawbridge ask"), "message")))
}
