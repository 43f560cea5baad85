package guards

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/notify"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

const (
	// defaultApprovalTimeout is how long a call waits for approval by default.
	defaultApprovalTimeout = 5 * time.Minute
	// maxWaitingPerCaller is the maximum number of calls of one caller that wait for approval at the same time.
	maxWaitingPerCaller = 16
	// approvalPollInterval is the interval at which a waiting call polls the store for an answer. approvalLease is the
	// time after which the store drops a request whose process does not renew it.
	approvalPollInterval = 250 * time.Millisecond
	approvalLease        = 15 * time.Second
	// approvalIDSize is the length of the ID of a request.
	approvalIDSize = 8
	// dropTimeout is the maximum time to delete a request after its call has ended.
	dropTimeout = 5 * time.Second
)

// An ApprovalQueue makes calls wait for the approval of a person. It stores the requests; any process of the same user
// can read and answer them. A call is refused if the person denies it, if there is no answer in time, or after any
// error. The caller learns that a person was asked, but receives no data with which it could answer the request.
type ApprovalQueue struct {
	// DB stores the requests and the answers.
	DB *store.DB
	// Logger receives the errors of the store. Callers do not receive these errors.
	Logger *slog.Logger
	// Announce is called with each waiting call, unless the caller receives the request itself as an ApprovalObserver.
	// It must not block. If Announce is nil, requests are not announced.
	Announce func(notify.Approval)
	// Timeout is how long a call waits; 0 means defaultApprovalTimeout.
	Timeout time.Duration
	// pollInterval is the interval at which the store is polled; 0 means approvalPollInterval.
	pollInterval time.Duration
}

var _ deck.Approver = (*ApprovalQueue)(nil)

// Approve waits until a person answers the request to approve a call. If an earlier answer already granted such calls,
// it does not wait.
func (d *ApprovalQueue) Approve(ctx context.Context, r deck.ApprovalRequest) (deck.ApprovalAnswer, error) {
	a, err := newPendingApproval(r)
	if err != nil {
		return deck.ApprovalAnswer{}, refusalFault(r, err, "let it be done in smaller steps")
	}
	return d.approvePending(ctx, r, a)
}

// approvePending uses a grant that covers the request, or waits for a person's answer.
func (d *ApprovalQueue) approvePending(ctx context.Context, r deck.ApprovalRequest, a store.PendingApproval) (
	deck.ApprovalAnswer, error) {
	grant, granted, err := d.DB.UseGrant(ctx, a)
	switch {
	case err != nil:
		return deck.ApprovalAnswer{}, d.storeFault(ctx, r, err)
	case granted:
		return deck.ApprovalAnswer{ID: grant.ID, By: grant.By}, nil
	}
	return d.enqueue(ctx, r, a)
}

// enqueue stores a request for approval of the call and waits until a person answers the request.
func (d *ApprovalQueue) enqueue(ctx context.Context, r deck.ApprovalRequest, a store.PendingApproval) (
	answer deck.ApprovalAnswer, err error) {
	a.ID = approvalID(r.Run, a.Call)
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
	defer d.dropRequest(ctx, r, a.ID)
	d.announce(r, a)
	answer.ID = a.ID
	answer.By, err = d.awaitAnswer(ctx, r, a.ID)
	return answer, err
}

// approvalID returns the ID of a request: the same for the same call of one run of a script, a random one without a run.
func approvalID(run, call string) string {
	if run == "" {
		return strings.ToLower(rand.Text()[:approvalIDSize])
	}
	sum := sha256.Sum256([]byte("approval " + run + " " + call))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:approvalIDSize])
}

// An ApprovalObserver is the Peer of a caller whose user may answer requests, such as the command line of the user.
// ApprovalPending informs it of the id of a waiting request at once. Other callers learn only that a person is asked.
type ApprovalObserver interface {
	ApprovalPending(id string, until time.Time, call ApprovalDetails)
}

// announce passes the request to the caller's peer, if the caller is the user and the peer is an ApprovalObserver.
// Otherwise it passes the request to Announce.
func (d *ApprovalQueue) announce(r deck.ApprovalRequest, a store.PendingApproval) {
	var shown ApprovalDetails
	if err := json.Unmarshal(a.Shown, &shown); err != nil {
		d.Logger.Warn("report an approval request to its caller", "err", err)
		return
	}
	until := time.Now().Add(d.timeout())
	if o, ok := r.Call.Peer.(ApprovalObserver); ok &&
		(r.Call.Caller.Kind == drawbridge.Author || r.Call.Caller.Agent != nil) { // the session of the user shows it
		o.ApprovalPending(a.ID, until, shown)
	} else if d.Announce != nil {
		d.Announce(notify.Approval{ID: a.ID, Tool: shown.Card, Server: shown.Server, Caller: shown.Caller,
			Client: shown.Client, Expires: until.UTC().Truncate(time.Second)})
	}
}

var (
	errDenied       = errors.New("a person said no")
	errCallChanged  = errors.New("the card or its configuration changed while a person was asked")
	errApprovalGone = errors.New("the approval request expired")
)

func (d *ApprovalQueue) timeout() time.Duration { return cmp.Or(d.Timeout, defaultApprovalTimeout) }

// awaitAnswer polls the store for the answer and renews the lease of the request. If the call is approved, it returns
// the name of the person; otherwise it returns an error.
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

// useApproval consumes an approval, which is valid for one call. After it returns nil, the call must be sent directly
// or not at all.
func (d *ApprovalQueue) useApproval(ctx context.Context, r deck.ApprovalRequest, id string) error {
	if !r.StillValid() {
		return refusalFault(r, errCallChanged, "call again to have the present version approved")
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

// timeoutFault returns the fault of a call whose approval request was not answered in time.
func (d *ApprovalQueue) timeoutFault(r deck.ApprovalRequest) error {
	return refusalFault(r, fmt.Errorf("it needs a person's approval, and got no answer within %s", d.timeout()),
		`have the user run "drawbridge ask --watch" in a terminal, then call again`)
}

// storeFault returns the fault of a call after an error of the store. The error itself is only logged and not sent to
// the caller, because it contains the path of the store.
func (d *ApprovalQueue) storeFault(ctx context.Context, r deck.ApprovalRequest, err error) error {
	if ctx.Err() != nil {
		return refusalFault(r, fmt.Errorf("while a person was asked: %w", context.Cause(ctx)), "")
	}
	d.Logger.Error("ask a person for approval: the call is refused", "card", r.Spec.Name, "err", err)
	return refusalFault(r,
		errors.New("it needs a person's approval, and the store does not answer"),
		"run drawbridge doctor")
}

// dropRequest deletes the request of a call that has ended. A person's no is kept for a while, so that the caller does not
// ask again at once; but in a session of the agent the person knows what was asked, and may want it asked again.
func (d *ApprovalQueue) dropRequest(ctx context.Context, r deck.ApprovalRequest, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
	defer cancel()
	if err := d.DB.DropPendingApproval(ctx, id, r.Call.Caller.Agent == nil); err != nil {
		d.Logger.Warn("delete an approval request", "err", err)
	}
}

// refusalFault returns the fault of a refused call. why is the reason, and next the advice to the caller.
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

// A progressSender sends progress notifications to a caller that requested them.
type progressSender struct {
	r    deck.ApprovalRequest
	sent int
}

// send reports a little more progress than the caller was told before. It stays below the next whole number, because
// progress must increase and the server may later report a progress of its own.
func (t *progressSender) send(ctx context.Context) {
	token := rawjson.Get(t.r.Call.Params, "_meta", mcp.MetaProgressToken)
	if token == nil || t.r.Call.Peer == nil {
		return
	}
	if _, ok := t.r.Call.Peer.(ApprovalObserver); ok {
		return // the observer received the request itself
	}
	t.sent++
	progress := fmt.Appendf(nil, "%d.%06d", t.r.Progress, t.sent)
	// An error means that the caller has disconnected, which also ends ctx.
	_ = t.r.Call.Peer.Notify(ctx, mcp.NoteProgress, rawjson.Apply(nil, rawjson.Put(token, "progressToken"),
		rawjson.Put(progress, "progress"),
		rawjson.Put(rawjson.Quote("a person is asked for approval: drawbridge ask"), "message")))
}
