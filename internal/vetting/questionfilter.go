package vetting

import (
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/oklog/ulid/v2"
)

// A QuestionFilter sanitises the requests that servers send to callers: questions to the user (elicitation) and prompts
// for the model (sampling). If a request cannot be checked, none of its text is shown. It is safe for concurrent use.
type QuestionFilter struct {
	sanitiser *Sanitiser
	record    func(audit.Record) error
	log       *slog.Logger
	now       func() time.Time

	// mu guards count and began. count is the number of findings of each server in the minute that started at began.
	mu    sync.Mutex
	began time.Time
	count map[drawbridge.ServerID]int
}

// SanitiseText returns a text of a server's result in the form that a model may read, and the names of the rules that
// matched. See shield.Shield.CheckResultText. If the text cannot be checked, SanitiseText returns a placeholder instead
// of the text.
func (s *Sanitiser) SanitiseText(text string) (shown string, rules []string) {
	sh, err := s.uncapped()
	if err != nil {
		return shield.SanitizedText, []string{"unseen"}
	}
	shown, _, reasons := sh.CheckResultText(text)
	return shown, shield.RuleNames(reasons)
}

// FlagText returns the names of the rules that match a text of a server's result. These are the rules that SanitiseText
// returns. excerpt is the beginning of the first match: printable, at most 64 bytes.
func (s *Sanitiser) FlagText(text string) (excerpt string, rules []string) {
	sh, err := s.uncapped()
	if err != nil {
		return "", []string{"unseen"}
	}
	_, _, reasons := sh.CheckResultText(text)
	rules = shield.RuleNames(reasons)
	for _, r := range reasons {
		if r.Excerpt != "" && slices.Contains(rules, r.Rule) {
			return r.Excerpt, rules
		}
	}
	return "", rules
}

// NewQuestionFilter returns a filter with the rules of a sanitiser. record writes a finding to the audit log; if record
// is nil, findings are not written to the audit log.
func NewQuestionFilter(s *Sanitiser, record func(audit.Record) error, log *slog.Logger,
	now func() time.Time) *QuestionFilter {
	return &QuestionFilter{sanitiser: s, record: record, log: log, now: now, count: map[drawbridge.ServerID]int{}}
}

// Filter returns the params of a server's request in the form that may be shown, see shield.Shield.CheckQuestion and
// CheckPrompt. If the request was changed or matched a rule, Filter logs the finding.
func (q *QuestionFilter) Filter(server drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage {
	report, err := q.inspect(method, params)
	if err != nil {
		q.recordAction(server, method, "blanked", "it could not be checked: "+err.Error())
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

// emptyQuestion returns valid params for the method that contain no text of the server.
func emptyQuestion(method string) json.RawMessage {
	if method == mcp.MethodSampling {
		return json.RawMessage(`{"messages":[],"maxTokens":1}`)
	}
	return json.RawMessage(`{"message":"` + shield.SanitizedText +
		`","requestedSchema":{"type":"object","properties":{}}}`)
}

// maxRecordsPerMinute is the maximum number of findings of one server that are logged in a minute.
const maxRecordsPerMinute = 50

// recordAction logs how a request was changed or flagged, and writes an audit record.
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
		why += "; further ones in this minute are not recorded"
	}
	q.log.Warn("a request of a server was changed or flagged", "server", server, "method", method, "did",
		did, "why", why)
	if q.record == nil {
		return
	}
	r := audit.Record{ID: ulid.Make().String(), Kind: audit.Shield, At: at, Method: method, Server: string(server),
		Card: method, Tool: method, Rule: did, Reason: why}
	if err := q.record(r); err != nil {
		q.log.Error("record a finding of the shield", "server", server, "rule", did, "err", err)
	}
}
