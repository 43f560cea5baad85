// Package notify tells a person that a call waits for approval: by a notification on the desktop, by a webhook, or by
// both. A message contains the name of the called tool and the command that shows the call. It contains neither the
// arguments, which may be secret, nor data with which another program could approve the call.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// An Approval is a call that waits for the approval of a person.
type Approval struct {
	// ID is the id of the approval request, as in "drawbridge ask show ID".
	ID string `json:"id"`
	// Tool is the called name. Server is the server that the tool belongs to; empty for a tool that Drawbridge ships.
	Tool   string `json:"tool"`
	Server string `json:"server,omitempty"`
	// Caller is the caller's principal, Client the name that the client program declared.
	Caller string `json:"caller"`
	Client string `json:"client,omitempty"`
	// Expires is the time when the call is refused if no person has decided.
	Expires time.Time `json:"expires"`
}

// ShowCommand returns the command that shows the call.
func (a Approval) ShowCommand() string { return "drawbridge ask show " + a.ID }

// Options select how a person is notified.
type Options struct {
	// Desktop turns on notifications on the desktop of the user who runs this process.
	Desktop bool
	// WebhookURL receives a POST request for each call, signed with WebhookSecret as Standard Webhooks specifies; empty
	// means no webhook.
	WebhookURL, WebhookSecret string
	// Logger receives warnings about messages that could not be delivered.
	Logger *slog.Logger

	// pauses are the pauses before the second and the third attempt to deliver a webhook; nil means 1 and 5 seconds.
	pauses []time.Duration
	// desktop shows a notification; nil means showOnDesktop.
	desktop func(ctx context.Context, title, body string) error
}

const (
	// maxQueued is the maximum number of queued messages; further messages are dropped.
	maxQueued = 64
	// desktopTimeout limits the time to show one notification on the desktop.
	desktopTimeout = 5 * time.Second
)

// A Notifier delivers messages about calls that wait for approval. Announce may be called from several goroutines.
type Notifier struct {
	o      Options
	client *http.Client
	queue  chan Approval
}

// New returns a notifier. It delivers messages only while Run runs.
func New(o Options) *Notifier {
	n := &Notifier{o: o, queue: make(chan Approval, maxQueued)}
	if o.WebhookURL != "" {
		n.client = safehttp.NewClient(o.WebhookURL)
	}
	if n.o.desktop == nil {
		n.o.desktop = showOnDesktop
	}
	if n.o.pauses == nil {
		n.o.pauses = []time.Duration{time.Second, 5 * time.Second}
	}
	return n
}

// Announce queues a message about a call that waits for approval. If the queue is full, it logs a warning and drops the
// message. It does not wait.
func (n *Notifier) Announce(a Approval) {
	select {
	case n.queue <- a:
	default:
		n.o.Logger.Warn("a waiting call is not announced: too many wait already", "id", a.ID)
	}
}

// Run delivers the queued messages, one after the other, until ctx ends.
func (n *Notifier) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-n.queue:
			n.deliver(ctx, a)
		}
	}
}

// deliver sends one message to the desktop and to the webhook, as configured, and logs failures.
func (n *Notifier) deliver(ctx context.Context, a Approval) {
	if n.o.Desktop {
		ctx, cancel := context.WithTimeout(ctx, desktopTimeout)
		title, body := desktopTexts(a)
		if err := n.o.desktop(ctx, title, body); err != nil && !errors.Is(err, context.Canceled) {
			n.o.Logger.Warn("show a notification on the desktop", "id", a.ID, "err", err)
		}
		cancel()
	}
	if n.o.WebhookURL != "" {
		if err := n.post(ctx, a); err != nil && ctx.Err() == nil {
			n.o.Logger.Warn("deliver a webhook", "id", a.ID, "err", err)
		}
	}
}
