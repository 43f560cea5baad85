package gateway

import (
	"errors"
	"log/slog"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/notify"
)

// ApprovalDetails are the details of a call that a person sees before approving it. They are stored as JSON in the
// field Shown of store.PendingApproval and store.Grant.
type ApprovalDetails = guards.ApprovalDetails

// A ScriptEffect has the collected calls of one tool in [ApprovalDetails], for a script that waits for approval.
type ScriptEffect = guards.ScriptEffect

// An ApprovalObserver is a [drawbridge.Peer] that is notified when a call of the owner waits for approval.
type ApprovalObserver = guards.ApprovalObserver

// approvalQueue returns the queue of calls that wait for approval.
func (g *Gateway) approvalQueue() *guards.ApprovalQueue {
	q := &guards.ApprovalQueue{DB: g.shared.db, Logger: g.log, Timeout: g.set.Settings.AskTimeout}
	if g.notifier != nil {
		q.Announce = g.notifier.Announce
	}
	return q
}

// newNotifier returns the notifier that tells a person about calls that wait for approval; nil if the settings turn on
// no notification.
func newNotifier(s config.Settings, log *slog.Logger) (*notify.Notifier, error) {
	o := notify.Options{Desktop: s.AskNotice != nil && *s.AskNotice, WebhookURL: s.AskWebhook, Logger: log}
	switch {
	case s.AskWebhook == "" && !o.Desktop:
		return nil, nil
	case s.AskWebhook == "":
		return notify.New(o), nil
	case s.AskWebhookSecretFile == "":
		return nil, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "read the settings",
			Err:  errors.New("ask_webhook needs a secret, so that its receiver can tell our requests from others"),
			Next: "set tools.ask_webhook_secret_file in drawbridge.toml"}
	}
	var err error
	o.WebhookSecret, err = readSecretFile("webhook secret", s.AskWebhookSecretFile)
	return notify.New(o), err
}

// spotlightFilter returns the filter that the settings define. Its method Selects reports whether the results for a
// caller are marked as foreign text. A setting in the configuration of a server takes precedence.
func (g *Gateway) spotlightFilter() deck.CallerFilter {
	s := g.set.Settings
	return deck.CallerFilter{HTTP: s.SpotlightHTTP != nil && *s.SpotlightHTTP, Clients: s.SpotlightClients}
}
