// Package notify tells a person that a call waits for approval: by a notification on the desktop, by a webhook, or
// both. A message names the call and the command that shows it. It has no arguments, which may be secret, and nothing
// with which the call could be answered.
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
	// ID is that of the request: drawbridge ask show ID.
	ID string `json:"id"`
	// Tool is the called name, Server the server that it belongs to; a shipped tool has none.
	Tool   string `json:"tool"`
	Server string `json:"server,omitempty"`
	// Caller is the principal, Client the name that the client declared.
	Caller string `json:"caller"`
	Client string `json:"client,omitempty"`
	// Expires is when the call is refused without an answer.
	Expires time.Time `json:"expires"`
}

// ShowCommand returns the command that shows the call.
func (a Approval) ShowCommand() string { return "drawbridge ask show " + a.ID }

// Options select the ways to notify.
type Options struct {
	// Desktop is true for notifications on the desktop of the user who runs this process.
	Desktop bool
	// WebhookURL receives a POST request for each call, signed with WebhookSecret as Standard Webhooks says; empty means
	// none.
	WebhookURL, WebhookSecret string
	// Logger receives what could not be delivered.
	Logger *slog.Logger

	// pauses are the pauses before the second and the third attempt; nil means retryPauses.
	pauses []time.Duration
	// desktop shows a notification; nil means showOnDesktop.
	desktop func(ctx context.Context, title, body string) error
}

const (
	// maxQueued is how many calls wait to be announced; more are dropped.
	maxQueued = 64
	// desktopTimeout bounds the showing of one notification.
	desktopTimeout = 5 * time.Second
)

// A Notifier delivers messages. Announce may be called from several goroutines.
type Notifier struct {
	o      Options
	client *http.Client
	queue  chan Approval
}

// New returns a notifier, which delivers while Run runs.
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

// Announce queues a message on a call. It does not wait.
func (n *Notifier) Announce(a Approval) {
	select {
	case n.queue <- a:
	default:
		n.o.Logger.Warn("a waiting call is not announced: too many wait already", "id", a.ID)
	}
}

// Run delivers messages until ctx ends.
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

// deliver delivers one message in each way, and logs what failed.
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
