package vetting

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/trust"
)

// TrustAccountName returns the name of a server's trust account. The name is a hash of the command or URL, with
// arguments, environment, headers and working directory as configured. If only the server's name or other settings
// change, the server has the same account as before.
func TrustAccountName(row config.Server) string {
	parts := []any{row.Command, row.Args, row.URL, row.Env, row.Headers}
	if len(row.Raw) > 0 {
		parts = parts[:0]
		for _, member := range []string{"command", "args", "url", "env", "headers"} {
			parts = append(parts, json.RawMessage(rawjson.Canonical(rawjson.Get(row.Raw, member))))
		}
	}
	text, err := json.Marshal(append(parts, row.Cwd))
	if err != nil {
		text = []byte(row.Hash) // invalid JSON: the server gets its own account
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// A ServerTrust maps the servers of one configuration to their trust accounts. Its methods may be called from several
// goroutines.
type ServerTrust struct {
	accounts *TrustAccounts // nil if servers have no accounts
	servers  atomic.Pointer[map[drawbridge.ServerID]accountHolder]
}

// An accountHolder is a server of the configuration. level is its configured trust level. account returns the name of
// its account, which is computed only once, because every call needs it.
type accountHolder struct {
	level   trust.Level
	account func() string
}

var _ TrustGate = (*ServerTrust)(nil)

// NewServerTrust returns a ServerTrust without servers. If accounts is nil, servers have no trust accounts, and
// Quarantined always returns false.
func NewServerTrust(accounts *TrustAccounts) *ServerTrust { return &ServerTrust{accounts: accounts} }

// Update replaces the servers by those in rows, the servers of a new configuration.
func (t *ServerTrust) Update(rows []config.Server) {
	servers := make(map[drawbridge.ServerID]accountHolder, len(rows))
	for _, row := range rows {
		servers[row.ID] = accountHolder{trust.Level(row.Trust),
			sync.OnceValue(func() string { return TrustAccountName(row) })}
	}
	t.servers.Store(&servers)
	if t.accounts == nil {
		return
	}
	now := time.Now()
	quarantined := t.accounts.accountNames(func(a *trustAccount) bool {
		return t.accounts.rules.IsQuarantined(a.state, now)
	})
	for _, name := range quarantined {
		t.LogQuarantine(name)
	}
}

// LogQuarantine logs that the quarantine of an account began or ended, once for each change. It logs nothing if no
// configured server has the account, because the store also contains accounts of servers in other configurations.
func (t *ServerTrust) LogQuarantine(account string) {
	for _, id := range t.ServersOf(account) {
		t.accounts.logQuarantine(account, string(id))
	}
}

// holder returns the accountHolder of a server. ok is false if the server is unknown or trust accounts are not used.
func (t *ServerTrust) holder(id drawbridge.ServerID) (h accountHolder, ok bool) {
	if servers := t.servers.Load(); t.accounts != nil && servers != nil {
		h, ok = (*servers)[id]
	}
	return h, ok
}

// AddEvents adds events to the account of a server.
func (t *ServerTrust) AddEvents(id drawbridge.ServerID, events ...trust.Event) {
	if h, ok := t.holder(id); ok {
		t.accounts.AddEvents(h.account(), string(id), events...)
	}
}

// CallEnded adds the trust events of a finished call to the server's account, see CallEvidence.
func (t *ServerTrust) CallEnded(id drawbridge.ServerID, _ drawbridge.Call, _ drawbridge.Result, err error) {
	t.AddEvents(id, CallEvidence(err)...)
}

// Quarantined reports whether a server is quarantined now.
func (t *ServerTrust) Quarantined(id drawbridge.ServerID) bool {
	h, ok := t.holder(id)
	return ok && t.accounts.Quarantined(h.account())
}

// Lookup returns the trust of a server. It returns nil if the server is unknown or trust accounts are not used.
func (t *ServerTrust) Lookup(id drawbridge.ServerID) *drawbridge.Trust {
	h, ok := t.holder(id)
	if !ok {
		return nil
	}
	found := t.accounts.Status(h.account()).Trust(h.level)
	return &found
}

// ServersOf returns the servers that have the account, in no particular order.
func (t *ServerTrust) ServersOf(account string) (ids []drawbridge.ServerID) {
	servers := t.servers.Load()
	if servers == nil {
		return nil
	}
	for id, h := range *servers {
		if h.account() == account {
			ids = append(ids, id)
		}
	}
	return ids
}

// Trust converts the status for display. configured is the trust level in the server's configuration.
func (s TrustStatus) Trust(configured trust.Level) drawbridge.Trust {
	return drawbridge.Trust{
		Score: s.Score, Level: string(trust.LevelForScore(s.Score, configured)),
		Quarantined: s.Quarantined, Until: s.Until,
	}
}
