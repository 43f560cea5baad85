package vetting

import (
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/oklog/ulid/v2"
)

// QuestionFilter looks at what servers ask of the people and the models behind callers. Whatever it can not look at it
// shows nothing of. It is safe for concurrent use.
type QuestionFilter struct {
	sanitiser *Sanitiser
	record    func(audit.Record) error
	log       *slog.Logger
	now       func() time.Time

	// mu guards how many records there were since a minute began, by server.
	mu    sync.Mutex
	began time.Time
	count map[drawbridge.ServerID]int
}

// SanitiseText gives a text that a server answered as a model may read it, and the rules that it met, see
// shield.ResultText. Of what it can not look at it shows nothing.
func (s *Sanitiser) SanitiseText(text string) (shown string, rules []string) {
	sh, err := s.uncapped()
	if err != nil {
		return shield.SanitizedText, []string{"unseen"}
	}
	shown, _, reasons := sh.CheckResultText(text)
	return shown, shield.RuleNames(reasons)
}

// NewQuestionFilter makes a look at questions with a sanitiser's rules. Record keeps what was done; nil keeps nothing.
func NewQuestionFilter(s *Sanitiser, record func(audit.Record) error, log *slog.Logger,
	now func() time.Time) *QuestionFilter {
	return &QuestionFilter{sanitiser: s, record: record, log: log, now: now, count: map[drawbridge.ServerID]int{}}
}

// Filter gives a question as it may be shown, see shield.Question and shield.Prompt, and records what was done to it.
func (q *QuestionFilter) Filter(server drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage {
	report, err := q.inspect(method, params)
	if err != nil {
		q.recordAction(server, method, "blanked", "it could not be looked at: "+err.Error())
		return emptyQuestion(method)
	}
	rules := shield.RuleNames(report.Reasons)
	if len(rules) == 0 {
		return report.Canonical
	}
	did, why := summariseReasons(report.Reasons)
	q.recordAction(server, method, did, why)
	return rawjson.Apply(report.Canonical, rawjson.Put(rawjson.AppendStrings(nil, rules...), "_meta", mcp.MetaFlagged))
}

func (q *QuestionFilter) inspect(method string, params json.RawMessage) (shield.Report, error) {
	sh, err := q.sanitiser.uncapped()
	switch {
	case err != nil:
		return shield.Report{}, err
	case len(params) == 0:
		return shield.Report{Canonical: params}, nil
	case method == mcp.MethodSampling:
		return sh.CheckPrompt(params)
	}
	return sh.CheckQuestion(params)
}

// emptyQuestion is a question of which nothing is shown.
func emptyQuestion(method string) json.RawMessage {
	if method == mcp.MethodSampling {
		return json.RawMessage(`{"messages":[],"maxTokens":1}`)
	}
	return json.RawMessage(`{"message":"` + shield.SanitizedText +
		`","requestedSchema":{"type":"object","properties":{}}}`)
}

// maxRecordsPerMinute is how many questions of one server are recorded in a minute.
const maxRecordsPerMinute = 50

// recordAction records what was done to a question.
func (q *QuestionFilter) recordAction(server drawbridge.ServerID, method, did, why string) {
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
	case n > maxRecordsPerMinute:
		return
	case n == maxRecordsPerMinute:
		why += "; of more in this minute there is no record"
	}
	q.log.Warn("something of what a server asks was changed or flagged", "server", server, "method", method, "did",
		did, "why", why)
	if q.record == nil {
		return
	}
	r := audit.Record{ID: ulid.Make().String(), Kind: audit.Shield, At: at, Method: method, Server: string(server),
		Card: method, Tool: method, Rule: did, Reason: why}
	if err := q.record(r); err != nil {
		q.log.Error("something that the shield did could not be recorded", "server", server, "rule", did, "err", err)
	}
}
