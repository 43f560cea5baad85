package guards

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
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

const (
	// defaultApprovalTimeout is how long a call waits for a person where nobody says otherwise.
	defaultApprovalTimeout = 5 * time.Minute
	// maxWaitingPerCaller is how many calls of one caller wait at the same time.
	maxWaitingPerCaller = 16
	// approvalPollInterval is how often it is looked for an answer, lease for how long a process says that it waits.
	approvalPollInterval = 250 * time.Millisecond
	approvalLease        = 15 * time.Second
	// dropTimeout bounds what is done when a call is over.
	dropTimeout = 5 * time.Second
)

// A ApprovalQueue asks people about calls.
type ApprovalQueue struct {
	// DB is where they answer.
	DB *store.DB
	// Logger is told of what nobody else hears of.
	Logger *slog.Logger
	// Timeout is how long a call waits; 0 is defaultApprovalTimeout.
	Timeout time.Duration
	// pollInterval is how often it is looked for an answer; 0 is approvalPollInterval.
	pollInterval time.Duration
}

var _ deck.Approver = (*ApprovalQueue)(nil)

// Approve waits for a person, or finds that they granted such a call before.
func (d *ApprovalQueue) Approve(ctx context.Context, r deck.ApprovalRequest) (deck.ApprovalAnswer, error) {
	a, err := newPendingApproval(r)
	if err != nil {
		return deck.ApprovalAnswer{}, refusalFault(r, err, "let it be done in smaller steps")
	}
	grant, granted, err := d.DB.UseGrant(ctx, a)
	switch {
	case err != nil:
		return deck.ApprovalAnswer{}, d.storeFault(ctx, r, err)
	case granted:
		return deck.ApprovalAnswer{ID: grant.ID, By: grant.By}, nil
	}
	return d.enqueue(ctx, r, a)
}

// enqueue has the call wait for an answer of its own.
func (d *ApprovalQueue) enqueue(ctx context.Context, r deck.ApprovalRequest, a store.PendingApproval) (
	answer deck.ApprovalAnswer, err error) {
	a.ID = strings.ToLower(rand.Text()[:8])
	err = d.DB.AddPendingApproval(ctx, a, d.timeout(), approvalLease, maxWaitingPerCaller)
	switch code := codeOf(err); {
	case code == drawbridge.RateLimited:
		f := refusalFault(r,
			fmt.Errorf("it needs a person's approval, and %d calls of this caller wait for one already",
				maxWaitingPerCaller),
			"wait until they are answered, then call again")
		f.Code = drawbridge.RateLimited
		return answer, f
	case code == drawbridge.PolicyBlocked:
		return answer, refusalFault(r, errDenied, "do not call this again unless the user asks for it")
	case err != nil:
		return answer, d.storeFault(ctx, r, err)
	}
	defer d.dropRequest(ctx, a.ID)
	answer.ID = a.ID
	answer.By, err = d.awaitAnswer(ctx, r, a.ID)
	return answer, err
}

var (
	errDenied       = errors.New("a person said no")
	errCallChanged  = errors.New("what was to be called changed while a person was asked")
	errApprovalGone = errors.New("nobody answers any more: what waited was cleared away")
)

func (d *ApprovalQueue) timeout() time.Duration { return cmp.Or(d.Timeout, defaultApprovalTimeout) }

// awaitAnswer waits for the answer, says now and then that it still does, and gives who answered.
func (d *ApprovalQueue) awaitAnswer(ctx context.Context, r deck.ApprovalRequest, id string) (by string, err error) {
	end := time.NewTimer(d.timeout())
	defer end.Stop()
	look := time.NewTicker(cmp.Or(d.pollInterval, approvalPollInterval))
	defer look.Stop()
	told := progressSender{r: r}
	told.send(ctx)
	for held := time.Now(); ; {
		select {
		case <-ctx.Done():
			return "", refusalFault(r, fmt.Errorf("while a person was asked: %w", context.Cause(ctx)), "")
		case <-end.C:
			return "", d.timeoutFault(r)
		case <-look.C:
		}
		switch answer, by, err := d.DB.PendingAnswer(ctx, id); {
		case codeOf(err) == drawbridge.NotFound:
			return "", refusalFault(r, errApprovalGone, "call again")
		case err != nil:
			return "", d.storeFault(ctx, r, err)
		case answer == store.AnswerDenied:
			return by, refusalFault(r, errDenied, "do not call this again unless the user asks for it")
		case answer == store.AnswerAllowed:
			return by, d.useApproval(ctx, r, id)
		}
		if time.Since(held) < approvalLease/3 {
			continue
		}
		held = time.Now()
		if err := d.DB.RenewPendingApproval(ctx, id, approvalLease); err != nil {
			return "", d.storeFault(ctx, r, err)
		}
		told.send(ctx)
	}
}

// useApproval uses up a yes. After it the call is sent, or never is.
func (d *ApprovalQueue) useApproval(ctx context.Context, r deck.ApprovalRequest, id string) error {
	if !r.StillValid() {
		return refusalFault(r, errCallChanged, "call again, and they are asked about what it is now")
	}
	taken, err := d.DB.UseApproval(ctx, id)
	switch {
	case err != nil:
		return d.storeFault(ctx, r, err)
	case !taken:
		return d.timeoutFault(r)
	}
	return nil
}

// timeoutFault is the fault of a call that nobody answered in time.
func (d *ApprovalQueue) timeoutFault(r deck.ApprovalRequest) error {
	return refusalFault(r, fmt.Errorf("it needs a person's approval, and nobody gave one within %s", d.timeout()),
		`have the user run "drawbridge ask --watch" in a terminal, then call again`)
}

// storeFault is the fault of a call that nobody could be asked about. What it was is for the log: it says where the
// store is.
func (d *ApprovalQueue) storeFault(ctx context.Context, r deck.ApprovalRequest, err error) error {
	if ctx.Err() != nil {
		return refusalFault(r, fmt.Errorf("while a person was asked: %w", context.Cause(ctx)), "")
	}
	d.Logger.Error("a person could not be asked, the call is refused", "card", r.Spec.Name, "err", err)
	return refusalFault(r,
		errors.New("it needs a person's approval, and the store where they are asked does not answer"),
		"drawbridge doctor looks at it")
}

// dropRequest forgets an ask when its call is over, however that came.
func (d *ApprovalQueue) dropRequest(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
	defer cancel()
	if err := d.DB.DropPendingApproval(ctx, id); err != nil {
		d.Logger.Warn("what waited for a person is not cleared away", "err", err)
	}
}

// refusalFault is the fault of a call that does not pass.
func refusalFault(r deck.ApprovalRequest, why error, next string) *drawbridge.Fault {
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

// A progressSender tells a caller that their call goes on, if they asked for that.
type progressSender struct {
	r    deck.ApprovalRequest
	sent int
}

// send tells a little of progress: less than the server will, since progress may not go back.
func (t *progressSender) send(ctx context.Context) {
	token := rawjson.Get(t.r.Call.Params, "_meta", mcp.MetaProgressToken)
	if token == nil || t.r.Call.Peer == nil {
		return
	}
	t.sent++
	progress := fmt.Appendf(nil, "0.%06d", t.sent)
	// Who does not hear it is gone, which ctx says too.
	_ = t.r.Call.Peer.Notify(ctx, mcp.NoteProgress, rawjson.Apply(nil, rawjson.Put(token, "progressToken"),
		rawjson.Put(progress, "progress"),
		rawjson.Put(rawjson.Quote("a person is asked for approval: drawbridge ask"), "message")))
}
