package audit

import (
	"bytes"
	"errors"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A Summary has the members of a stored record by which records are found.
type Summary struct {
	Kind    RecordKind
	ID      string
	Outcome Outcome
	// Server, Principal and Client are JSON strings, or nil. They share memory with the record.
	Server, Principal, Client []byte
}

var errNoSummary = errors.New("read a record of the audit: invalid JSON, or no id or kind")

// Summarize returns the summary of a record that AppendRecord encoded. It checks that the line is a JSON object. The
// error does not contain parts of the record.
func Summarize(line []byte) (s Summary, err error) {
	end, err := rawjson.ScanObject(line, func(m rawjson.Member) bool {
		switch string(m.Name) {
		case `"id"`:
			s.ID = plainString(m.Value)
		case `"kind"`:
			s.Kind = knownKind(m.Value)
		case `"outcome"`:
			s.Outcome = knownOutcome(m.Value)
		case `"server"`:
			s.Server = m.Value
		case `"caller"`:
			_, _ = rawjson.ScanObject(m.Value, func(m rawjson.Member) bool { // the outer scan reports invalid JSON
				switch string(m.Name) {
				case `"principal"`:
					s.Principal = m.Value
				case `"client"`:
					s.Client = m.Value
				}
				return true
			})
		}
		return true
	})
	if err == nil {
		err = rawjson.CheckEnd(line, end)
	}
	if err != nil || s.ID == "" || s.Kind == "" {
		return s, errNoSummary
	}
	return s, nil
}

// plainString returns the value of a JSON string, or an empty string for other values.
func plainString(value []byte) string {
	if n := len(value); n >= 2 && value[0] == '"' {
		if text := string(value[1 : n-1]); plainPrefixLen(text) == len(text) {
			return text
		}
	}
	text, _ := rawjson.DecodeString(value)
	return text
}

// knownKind is plainString for a kind. It does not allocate memory for the kinds of this package.
func knownKind(value []byte) RecordKind {
	for _, k := range [...]RecordKind{Call, Done, AdminAction, Shield, Note, Anchor} {
		if len(value) == len(k)+2 && string(value[1:len(value)-1]) == string(k) {
			return k
		}
	}
	return RecordKind(plainString(value))
}

// knownOutcome is plainString for an outcome. It does not allocate memory for the outcomes of this package.
func knownOutcome(value []byte) Outcome {
	for _, o := range [...]Outcome{OK, IsError, Asked, Task, Fault, Ambiguous, Refused, Unknown} {
		if len(value) == len(o)+2 && string(value[1:len(value)-1]) == string(o) {
			return o
		}
	}
	return Outcome(plainString(value))
}

// EndsOK reports whether a record that AppendRecord encoded ends with the outcome of a success. It is cheaper than
// Summarize. The arguments of a call are not at the end of a record, so they cannot imitate it.
func EndsOK(line []byte) bool {
	rest, ok := bytes.CutSuffix(line, []byte("}"))
	if !ok {
		return false
	}
	for _, name := range [...]string{`,"bytes":`, `,"ns":`} {
		digits := len(rest)
		for digits > 0 && rest[digits-1] >= '0' && rest[digits-1] <= '9' {
			digits--
		}
		if before, ok := bytes.CutSuffix(rest[:digits], []byte(name)); ok && digits < len(rest) {
			rest = before
		}
	}
	for _, o := range [...]Outcome{OK, Asked, Task} {
		if before, ok := bytes.CutSuffix(rest, []byte(`"`)); ok {
			if before, ok = bytes.CutSuffix(before, []byte(o)); ok && bytes.HasSuffix(before, []byte(`,"outcome":"`)) {
				return true
			}
		}
	}
	return false
}
