package server

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A ClientActivity holds the numbers of sessions and calls of one client since the server was created. A client is
// identified by principal, client name and transport.
type ClientActivity struct {
	// Principal is the authenticated principal. Client is the name that the client declared, which is not
	// authenticated.
	Principal string `json:"principal"`
	Client    string `json:"client,omitempty"`
	// Via is the transport, "stdio" or "http".
	Via string `json:"via"`
	// Sessions counts the open stateful sessions. Calls counts tool calls and other requests that were passed to the
	// deck. Errors counts the calls that ended in a fault; a result in which a tool reports an error is not counted.
	Sessions int   `json:"sessions"`
	Calls    int64 `json:"calls"`
	Errors   int64 `json:"errors"`
	// Last is the time when the last call began; zero before the first call.
	Last time.Time `json:"last,omitzero"`
}

// maxActivities is the maximum number of clients that are counted separately. A limit is needed, because a client can
// declare any name. All further clients are counted together, under the name uncountedClients.
const (
	maxActivities    = 256
	uncountedClients = "(others)"
)

// activityTable counts the sessions and calls of each client. The zero value is ready to use.
type activityTable struct {
	mu       sync.Mutex
	byClient map[clientKey]*ClientActivity
}

// update calls change with the counts of the client k, so that change can modify them. All sessions of a client share
// the same counts.
func (t *activityTable) update(k clientKey, change func(*ClientActivity)) {
	k.session = ""
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byClient == nil {
		t.byClient = map[clientKey]*ClientActivity{}
	}
	one := t.byClient[k]
	if one == nil && len(t.byClient) >= maxActivities {
		k.client = uncountedClients
		one = t.byClient[k]
	}
	if one == nil {
		one = &ClientActivity{Principal: k.principal, Client: safetext.Truncate(k.client, 100, safetext.Bytes, "…"),
			Via: string(k.transport)}
		t.byClient[k] = one
	}
	change(one)
}

func (t *activityTable) callBegan(k clientKey) {
	t.update(k, func(a *ClientActivity) { a.Calls, a.Last = a.Calls+1, time.Now() })
}

func (t *activityTable) callFailed(k clientKey) {
	t.update(k, func(a *ClientActivity) { a.Errors++ })
}

// sessionOpened and sessionEnded update the number of open sessions of a client.
func (t *activityTable) sessionOpened(k clientKey) {
	t.update(k, func(a *ClientActivity) { a.Sessions++ })
}

func (t *activityTable) sessionEnded(k clientKey) {
	t.update(k, func(a *ClientActivity) { a.Sessions = max(0, a.Sessions-1) })
}

// Activity returns the activity of each client since the server was created, sorted by transport, principal and client.
func (s *Server) Activity() []ClientActivity {
	s.activity.mu.Lock()
	defer s.activity.mu.Unlock()
	var all []ClientActivity
	for _, one := range s.activity.byClient {
		all = append(all, *one)
	}
	return MergeActivity(nil, all)
}

// MergeActivity returns the activities in all and in more, sorted by transport, principal and client. If both contain
// the same client, its counts are added.
func MergeActivity(all, more []ClientActivity) []ClientActivity {
	for _, one := range more {
		i := slices.IndexFunc(all, func(a ClientActivity) bool { return compareClients(a, one) == 0 })
		if i < 0 {
			all = append(all, one)
			continue
		}
		all[i].Sessions += one.Sessions
		all[i].Calls += one.Calls
		all[i].Errors += one.Errors
		if one.Last.After(all[i].Last) {
			all[i].Last = one.Last
		}
	}
	slices.SortFunc(all, compareClients)
	return all
}

func compareClients(a, b ClientActivity) int {
	return cmp.Or(cmp.Compare(a.Via, b.Via), cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Client, b.Client))
}
