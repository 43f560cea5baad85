package server

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A ClientActivity is what the callers of one principal and client name did since the server was made.
type ClientActivity struct {
	// Principal is who the callers proved to be; Client is the name that the client declared, which is not proved.
	Principal string `json:"principal"`
	Client    string `json:"client,omitempty"`
	// Via is the transport, "stdio" or "http".
	Via string `json:"via"`
	// Sessions counts the stateful sessions that are open. Calls counts tool calls and other requests that went to the
	// deck; Errors counts those that ended in a fault, not results in which a tool reports an error.
	Sessions int   `json:"sessions"`
	Calls    int64 `json:"calls"`
	Errors   int64 `json:"errors"`
	// Last is when the last call began; zero before the first.
	Last time.Time `json:"last,omitzero"`
}

// maxActivities bounds the clients that are counted apart: a client can declare any name. Later ones are counted under
// the name uncountedClients.
const (
	maxActivities    = 256
	uncountedClients = "(others)"
)

// activityTable counts what each client does. The zero value is ready.
type activityTable struct {
	mu       sync.Mutex
	byClient map[clientKey]*ClientActivity
}

// update changes the counts of a client. Its sessions are counted together.
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

// sessionOpened and sessionEnded count the open sessions of a client.
func (t *activityTable) sessionOpened(k clientKey) {
	t.update(k, func(a *ClientActivity) { a.Sessions++ })
}

func (t *activityTable) sessionEnded(k clientKey) {
	t.update(k, func(a *ClientActivity) { a.Sessions = max(0, a.Sessions-1) })
}

// Activity returns what each client did since the server was made, ordered by transport, principal and client.
func (s *Server) Activity() []ClientActivity {
	s.activity.mu.Lock()
	defer s.activity.mu.Unlock()
	var all []ClientActivity
	for _, one := range s.activity.byClient {
		all = append(all, *one)
	}
	return MergeActivity(nil, all)
}

// MergeActivity adds the counts of more to those of the same clients in all, and returns all of them ordered by
// transport, principal and client.
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
