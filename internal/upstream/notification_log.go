package upstream

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

const (
	// maxRecentNotifications is how many notifications of a server are stored.
	maxRecentNotifications = 50
	// maxNotificationText is the length in bytes to which the params of a stored notification are cut.
	// maxNotificationMethod is the length in bytes to which its method is cut.
	maxNotificationText, maxNotificationMethod = 500, 100
	// maxSecretText is how many bytes after maxNotificationText are also searched for secrets. A secret of that length
	// is thus recognized even if the stored text ends within the secret.
	maxSecretText = 8 << 10
	// maxCountedMethods is how many methods are counted separately. All other methods are counted together as
	// otherMethods.
	maxCountedMethods = 32
	otherMethods      = "others"
)

// A notificationLog stores the last notifications of a server, and counts all notifications by method. Its methods may
// be called from several goroutines. The zero value is empty.
type notificationLog struct {
	mu     sync.Mutex
	counts map[string]int
	recent []drawbridge.ReceivedNotification // oldest first
}

// recordNotification stores a notification of the server in the log, with secrets redacted.
func (e *managedServer) recordNotification(method string, params json.RawMessage) {
	e.notifications.add(method, func() string {
		// The redactor receives more text than is stored, so that no part of a secret is stored.
		return e.redactor.redact(string(params[:min(len(params), maxNotificationText+maxSecretText)]))
	})
}

// add counts a notification and stores it. Progress notifications are only counted, since a call may send thousands of
// them. text returns the params to store.
func (l *notificationLog) add(method string, text func() string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	method = safetext.Truncate(method, maxNotificationMethod, safetext.Bytes, "…")
	counted := method
	if _, known := l.counts[method]; !known && len(l.counts) >= maxCountedMethods {
		counted = otherMethods
	}
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[counted]++
	if method == mcp.NoteProgress {
		return
	}
	if len(l.recent) == maxRecentNotifications {
		l.recent = slices.Delete(l.recent, 0, 1)
	}
	l.recent = append(l.recent, drawbridge.ReceivedNotification{At: time.Now(), Method: method,
		Params: safetext.Truncate(text(), maxNotificationText, safetext.Bytes, "…")})
}

// report returns the counts by method and the stored notifications.
func (l *notificationLog) report() (map[string]int, []drawbridge.ReceivedNotification) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts), slices.Clone(l.recent)
}

// Notifications returns the report about a server's notifications: the declared capabilities, the watched resources,
// the counts and the last notifications. It returns an error for an unknown name.
func (f *Fleet) Notifications(id drawbridge.ServerID) (drawbridge.NotificationReport, error) {
	e, err := f.serverByID(id)
	if err != nil {
		return drawbridge.NotificationReport{}, err
	}
	r := drawbridge.NotificationReport{Server: id}
	if l, _ := e.listing.get(); l != nil {
		r.Declared = notifyingCapabilities(l.Capabilities)
	}
	watched, _ := e.watch.current()
	r.Watched = watched.URIs
	r.Counts, r.Recent = e.notifications.report()
	return r, nil
}

// notifyingCapabilities returns the declared capabilities that announce notifications, such as "tools.listChanged".
func notifyingCapabilities(capabilities json.RawMessage) (declared []string) {
	for _, path := range [][]string{{"tools", "listChanged"}, {"prompts", "listChanged"}, {"resources", "listChanged"},
		{"resources", "subscribe"}} {
		if string(rawjson.Get(capabilities, path...)) == "true" {
			declared = append(declared, path[0]+"."+path[1])
		}
	}
	if rawjson.Get(capabilities, "logging") != nil {
		declared = append(declared, "logging")
	}
	return declared
}
