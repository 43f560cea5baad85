package vetting

import (
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/audit"
	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/drawbridge-mcp/drawbridge/wire"
	"github.com/oklog/ulid/v2"
)

// Questions looks at what servers ask of the people and the models behind callers. Whatever it can not look at it shows nothing
// of. It is safe for concurrent use.
type Questions struct {
	sanitiser *Sanitiser
	record    func(audit.Record) error
	log       *slog.Logger
	now       func() time.Time

	// mu guards how many records there were since a minute began, by server.
	mu    sync.Mutex
	began time.Time
	count map[drawbridge.ServerID]int
}

// Read gives a text that a server answered as a model may read it, and the rules that it met, see shield.ResultText. Of what it can
// not look at it shows nothing.
func (s *Sanitiser) Read(text string) (shown string, rules []string) {
	sh, err := s.long()
	if err != nil {
		return shield.Sanitized, []string{"unseen"}
	}
	shown, _, reasons := sh.ResultText(text)
	return shown, shield.RulesMet(reasons)
}

// NewQuestions makes a look at questions with a sanitiser's rules. Record keeps what was done; nil keeps nothing.
func NewQuestions(s *Sanitiser, record func(audit.Record) error, log *slog.Logger, now func() time.Time) *Questions {
	return &Questions{sanitiser: s, record: record, log: log, now: now, count: map[drawbridge.ServerID]int{}}
}

// Look gives a question as it may be shown, see shield.Question and shield.Prompt, and records what was done to it.
func (q *Questions) Look(server drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage {
	report, err := q.judge(method, params)
	if err != nil {
		q.note(server, method, "blanked", "it could not be looked at: "+err.Error())
		return nothing(method)
	}
	rules := shield.RulesMet(report.Reasons)
	if len(rules) == 0 {
		return report.Canonical
	}
	did, why := noted(report.Reasons)
	q.note(server, method, did, why)
	return wire.Apply(report.Canonical, wire.Put(wire.AppendTexts(nil, rules...), "_meta", wire.MetaFlagged))
}

func (q *Questions) judge(method string, params json.RawMessage) (shield.Report, error) {
	sh, err := q.sanitiser.long()
	switch {
	case err != nil:
		return shield.Report{}, err
	case len(params) == 0:
		return shield.Report{Canonical: params}, nil
	case method == wire.MethodSampling:
		return sh.Prompt(params)
	}
	return sh.Question(params)
}

// nothing is a question of which nothing is shown.
func nothing(method string) json.RawMessage {
	if method == wire.MethodSampling {
		return json.RawMessage(`{"messages":[],"maxTokens":1}`)
	}
	return json.RawMessage(`{"message":"` + shield.Sanitized + `","requestedSchema":{"type":"object","properties":{}}}`)
}

// mostNoted is how many questions of one server are recorded in a minute.
const mostNoted = 50

// note records what was done to a question.
func (q *Questions) note(server drawbridge.ServerID, method, did, why string) {
	at := q.now()
	q.mu.Lock()
	if at.Sub(q.began) >= time.Minute || at.Before(q.began) {
		q.began = at
		clear(q.count)
	}
	q.count[server]++
	n := q.count[server]
	q.mu.Unlock()
	switch {
	case n > mostNoted:
		return
	case n == mostNoted:
		why += "; of more in this minute there is no record"
	}
	q.log.Warn("something of what a server asks was changed or flagged", "server", server, "method", method, "did", did, "why", why)
	if q.record == nil {
		return
	}
	r := audit.Record{ID: ulid.Make().String(), Kind: audit.Shield, At: at, Method: method, Server: string(server), Card: method, Tool: method, Rule: did, Reason: why}
	if err := q.record(r); err != nil {
		q.log.Error("something that the shield did could not be recorded", "server", server, "rule", did, "err", err)
	}
}
