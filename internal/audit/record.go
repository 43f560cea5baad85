package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A RecordKind says what a record tells.
type RecordKind string

// The kinds.
const (
	// Call is a call that the guards let pass, written before anything was sent. With an Outcome it is one that ended
	// before that: nothing was sent.
	Call RecordKind = "call"
	// Done is what came of the call with the same ID.
	Done RecordKind = "done"
	// AdminAction is something that a person did to what guards go by, such as accepting a definition, written before
	// it is done: Method is the command, Card what it was about. A Done with the same ID says what came of it.
	AdminAction RecordKind = "act"
	// Shield is something that the shield did: to a definition, to a result, to a server.
	Shield RecordKind = "shield"
	// Note is something about the audit itself, such as a tail that was torn by a crash.
	Note RecordKind = "note"
)

// An Outcome says what came of a call. The zero value is that nobody knows: it goes on, or the process died in it.
type Outcome string

// The outcomes.
const (
	OK Outcome = "ok"
	// IsError is a result that says of itself that it is an error.
	IsError Outcome = "is_error"
	// Asked is an answer that asks the caller for something first; Task is one that names a task in its place.
	Asked Outcome = "asked"
	Task  Outcome = "task"
	// Fault is a call that was sent, or was to be, and failed. Ambiguous is one that failed and may have had its
	// effect.
	Fault     Outcome = "fault"
	Ambiguous Outcome = "ambiguous"
	// Refused is a call that a guard did not let pass. Unknown is one of a name that there is not, or not for that
	// caller.
	Refused Outcome = "refused"
	Unknown Outcome = "unknown"
)

// Failed reports whether the outcome is that the caller did not get what they asked for.
func (o Outcome) Failed() bool {
	switch o {
	case OK, Asked, Task:
		return false
	}
	return true
}

// A Caller is who called, as far as it is kept.
type Caller struct {
	// Kind is the caller's, such as "external"; Principal is who they are.
	Kind      string `json:"kind,omitzero"`
	Principal string `json:"principal,omitzero"`
	// Client is the client's name and version by its own claim; Session tells sessions apart, and is not their key.
	Client  string `json:"client,omitzero"`
	Session string `json:"session,omitzero"`
	// Thread and Run place an agent's call.
	Thread string `json:"thread,omitzero"`
	Run    string `json:"run,omitzero"`
}

// A Record is one line of the audit. Members that say nothing are left out.
type Record struct {
	ID   string     `json:"id"`
	Kind RecordKind `json:"kind"`
	At   time.Time  `json:"at"`
	// Parent is the ID of the call in whose course this one was made.
	Parent string `json:"parent,omitzero"`
	Caller Caller `json:"caller,omitzero"`
	// Transport is how the call came in: "stdio", "http"; empty for one from within the program.
	Transport string `json:"door,omitzero"`
	Method    string `json:"method,omitzero"`
	// ViaCard is the card by which the call came, where it was not made directly: "call_tool".
	ViaCard string `json:"through,omitzero"`
	// Card is the name or URI that the call is about, as the caller knows it; Tool is what its Server calls it. Of a
	// URI what looks like a secret is left out.
	Card   string `json:"card,omitzero"`
	Server string `json:"server,omitzero"`
	Tool   string `json:"tool,omitzero"`
	// Definition is the SHA-256 of the card's definition as it was listed then, in hexadecimal.
	Definition string `json:"definition,omitzero"`
	// Arguments are the call's as the caller sent them before the record is written, and what the rules left of them
	// once it was read. Digest is the SHA-256 of what the caller sent, in hexadecimal, and Size how many bytes that
	// was: the rules fill them in.
	Arguments json.RawMessage `json:"arguments,omitzero"`
	Digest    string          `json:"digest,omitzero"`
	Size      int             `json:"size,omitzero"`
	// Effect is the verdict: "allow", "ask" or "deny". Rule names what decided, Reason says why.
	Effect string `json:"effect,omitzero"`
	Rule   string `json:"rule,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Approval is the ID of the question that a person answered, or of the grant that they gave before, and By who
	// they are and where they said so. Both are empty where nobody was asked.
	Approval string `json:"approval,omitzero"`
	By       string `json:"by,omitzero"`
	// Outcome says what came of it, Code is the fault's, Duration the time from the call's beginning, and Bytes the
	// size of the result.
	Outcome  Outcome       `json:"outcome,omitzero"`
	Code     string        `json:"code,omitzero"`
	Duration time.Duration `json:"ns,omitzero"`
	Bytes    int           `json:"bytes,omitzero"`
}

// maxText is the most bytes of a member that is not Arguments: they come from callers and servers.
const maxText = 512

// AppendRecord writes the record as one line of JSON, without the line feed, as far as the rules let it. It does not
// change the record.
func (r *RedactionRules) AppendRecord(dst []byte, rec *Record) []byte {
	w := recordWriter{dst, r}
	w.appendRaw(`{"id":`)
	w.appendQuoted(rec.ID)
	w.appendText(`,"kind":`, string(rec.Kind))
	w.appendTime(`,"at":`, rec.At)
	w.appendText(`,"parent":`, rec.Parent)
	w.appendCaller(&rec.Caller)
	w.appendText(`,"door":`, rec.Transport)
	w.appendText(`,"method":`, rec.Method)
	w.appendText(`,"through":`, rec.ViaCard)
	w.appendRedactedText(`,"card":`, rec.Card)
	w.appendText(`,"server":`, rec.Server)
	if rec.Tool != rec.Card {
		w.appendRedactedText(`,"tool":`, rec.Tool)
	}
	w.appendText(`,"definition":`, rec.Definition)
	w.appendArguments(rec.Arguments)
	w.appendText(`,"effect":`, rec.Effect)
	w.appendText(`,"rule":`, rec.Rule)
	w.appendRedactedText(`,"reason":`, rec.Reason)
	w.appendText(`,"approval":`, rec.Approval)
	w.appendText(`,"by":`, rec.By)
	w.appendText(`,"outcome":`, string(rec.Outcome))
	w.appendText(`,"code":`, rec.Code)
	w.appendNumber(`,"ns":`, int64(rec.Duration))
	w.appendNumber(`,"bytes":`, int64(rec.Bytes))
	w.appendRaw("}")
	return w.dst
}

func (w *recordWriter) appendCaller(c *Caller) {
	before := len(w.dst)
	w.appendRaw(`,"caller":`)
	start := len(w.dst)
	w.appendText(`,"kind":`, c.Kind)
	w.appendText(`,"principal":`, c.Principal)
	w.appendRedactedText(`,"client":`, c.Client)
	w.appendText(`,"session":`, c.Session)
	w.appendText(`,"thread":`, c.Thread)
	w.appendText(`,"run":`, c.Run)
	if len(w.dst) == start {
		w.dst = w.dst[:before]
		return
	}
	w.dst[start] = '{' // in the place of the first comma
	w.appendRaw("}")
}

// clipText shortens a text to at most maxText bytes, between two characters.
func clipText(text string) string { return safetext.Truncate(text, maxText, safetext.Bytes, "…") }

// DecodeRecord reads a record that rules have written. The error shows nothing of it.
func DecodeRecord(line []byte) (Record, error) {
	var rec Record
	if err := json.Unmarshal(line, &rec); err != nil {
		return Record{}, errors.New("read a record of the audit: it is none")
	}
	if rec.ID == "" || rec.Kind == "" {
		return Record{}, fmt.Errorf("read a record of the audit: it has no id or no kind")
	}
	if rec.Tool == "" && rec.Server != "" {
		rec.Tool = rec.Card
	}
	return rec, nil
}

// DecodeRecordHead returns kind and ID of a record that rules have written. Of the rest it only sees that it is JSON.
// The error is as for Decode.
func DecodeRecordHead(line []byte) (kind RecordKind, id string, err error) {
	rest, ours := bytes.CutPrefix(line, []byte(`{"id":"`))
	first, rest, more := bytes.Cut(rest, []byte(`","kind":"`))
	word, _, whole := bytes.Cut(rest, []byte(`"`))
	if !ours || !more || !whole || len(first) == 0 || len(word) == 0 || bytes.ContainsAny(first, `"\`) ||
		!json.Valid(line) {
		r, err := DecodeRecord(line)
		return r.Kind, r.ID, err
	}
	for _, known := range [...]RecordKind{Call, Done, AdminAction, Shield, Note} {
		if string(word) == string(known) {
			return known, string(first), nil
		}
	}
	r, err := DecodeRecord(line)
	return r.Kind, r.ID, err
}
