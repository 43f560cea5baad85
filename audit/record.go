package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Kind says what a record tells.
type Kind string

// The kinds.
const (
	// Call is a call that the guards let pass, written before anything was sent. With an Outcome it is one that ended before
	// that: nothing was sent.
	Call Kind = "call"
	// Done is what came of the call with the same ID.
	Done Kind = "done"
	// Act is something that a person did to what guards go by, such as accepting a definition, written before it is done: Method
	// is the command, Card what it was about. A Done with the same ID says what came of it.
	Act Kind = "act"
	// Shield is something that the shield did: to a definition, to a result, to a server.
	Shield Kind = "shield"
	// Note is something about the audit itself, such as a tail that was torn by a crash.
	Note Kind = "note"
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
	// Fault is a call that was sent, or was to be, and failed. Ambiguous is one that failed and may have had its effect.
	Fault     Outcome = "fault"
	Ambiguous Outcome = "ambiguous"
	// Refused is a call that a guard did not let pass. Unknown is one of a name that there is not, or not for that caller.
	Refused Outcome = "refused"
	Unknown Outcome = "unknown"
)

// Failed says whether the outcome is that the caller did not get what they asked for.
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
	ID   string    `json:"id"`
	Kind Kind      `json:"kind"`
	At   time.Time `json:"at"`
	// Parent is the ID of the call in whose course this one was made.
	Parent string `json:"parent,omitzero"`
	Caller Caller `json:"caller,omitzero"`
	// Door is how the call came in: "stdio", "http"; empty for one from within the program.
	Door   string `json:"door,omitzero"`
	Method string `json:"method,omitzero"`
	// Through is the card by which the call came, where it was not made directly: "call_tool".
	Through string `json:"through,omitzero"`
	// Card is the name or URI that the call is about, as the caller knows it; Tool is what its Server calls it. Of a URI
	// what looks like a secret is left out.
	Card   string `json:"card,omitzero"`
	Server string `json:"server,omitzero"`
	Tool   string `json:"tool,omitzero"`
	// Definition is the SHA-256 of the card's definition as it was listed then, in hexadecimal.
	Definition string `json:"definition,omitzero"`
	// Arguments are the call's as the caller sent them before the record is written, and what the rules left of them once it
	// was read. Digest is the SHA-256 of what the caller sent, in hexadecimal, and Size how many bytes that was: the rules fill
	// them in.
	Arguments json.RawMessage `json:"arguments,omitzero"`
	Digest    string          `json:"digest,omitzero"`
	Size      int             `json:"size,omitzero"`
	// Effect is the verdict: "allow", "ask" or "deny". Rule names what decided, Reason says why.
	Effect string `json:"effect,omitzero"`
	Rule   string `json:"rule,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Approval is the ID of the question that a person answered, or of the grant that they gave before, and By who they are and
	// where they said so. Both are empty where nobody was asked.
	Approval string `json:"approval,omitzero"`
	By       string `json:"by,omitzero"`
	// Outcome says what came of it, Code is the fault's, Duration the time from the call's beginning, and Bytes the size of the
	// result.
	Outcome  Outcome       `json:"outcome,omitzero"`
	Code     string        `json:"code,omitzero"`
	Duration time.Duration `json:"ns,omitzero"`
	Bytes    int           `json:"bytes,omitzero"`
}

// maxText is the most bytes of a member that is not Arguments: they come from callers and servers.
const maxText = 512

// Append writes the record as one line of JSON, without the line feed, as far as the rules let it. It does not change the record.
func (r *Rules) Append(dst []byte, rec *Record) []byte {
	w := writer{dst, r}
	w.add(`{"id":`)
	w.quoted(rec.ID)
	w.text(`,"kind":`, string(rec.Kind))
	w.time(`,"at":`, rec.At)
	w.text(`,"parent":`, rec.Parent)
	w.caller(&rec.Caller)
	w.text(`,"door":`, rec.Door)
	w.text(`,"method":`, rec.Method)
	w.text(`,"through":`, rec.Through)
	w.veiled(`,"card":`, rec.Card)
	w.text(`,"server":`, rec.Server)
	if rec.Tool != rec.Card {
		w.veiled(`,"tool":`, rec.Tool)
	}
	w.text(`,"definition":`, rec.Definition)
	w.arguments(rec.Arguments)
	w.text(`,"effect":`, rec.Effect)
	w.text(`,"rule":`, rec.Rule)
	w.veiled(`,"reason":`, rec.Reason)
	w.text(`,"approval":`, rec.Approval)
	w.text(`,"by":`, rec.By)
	w.text(`,"outcome":`, string(rec.Outcome))
	w.text(`,"code":`, rec.Code)
	w.number(`,"ns":`, int64(rec.Duration))
	w.number(`,"bytes":`, int64(rec.Bytes))
	w.add("}")
	return w.dst
}

func (w *writer) caller(c *Caller) {
	before := len(w.dst)
	w.add(`,"caller":`)
	start := len(w.dst)
	w.text(`,"kind":`, c.Kind)
	w.text(`,"principal":`, c.Principal)
	w.veiled(`,"client":`, c.Client)
	w.text(`,"session":`, c.Session)
	w.text(`,"thread":`, c.Thread)
	w.text(`,"run":`, c.Run)
	if len(w.dst) == start {
		w.dst = w.dst[:before]
		return
	}
	w.dst[start] = '{' // in the place of the first comma
	w.add("}")
}

// clip shortens a text to at most maxText bytes, between two characters.
func clip(text string) string { return safetext.Truncate(text, maxText, safetext.Bytes, "…") }

// Decode reads a record that rules have written. The error shows nothing of it.
func Decode(line []byte) (Record, error) {
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

// Head gives kind and ID of a record that rules have written. Of the rest it only sees that it is JSON. The error is as for Decode.
func Head(line []byte) (kind Kind, id string, err error) {
	rest, ours := bytes.CutPrefix(line, []byte(`{"id":"`))
	first, rest, more := bytes.Cut(rest, []byte(`","kind":"`))
	word, _, whole := bytes.Cut(rest, []byte(`"`))
	if !ours || !more || !whole || len(first) == 0 || len(word) == 0 || bytes.ContainsAny(first, `"\`) || !json.Valid(line) {
		r, err := Decode(line)
		return r.Kind, r.ID, err
	}
	for _, known := range [...]Kind{Call, Done, Act, Shield, Note} {
		if string(word) == string(known) {
			return known, string(first), nil
		}
	}
	r, err := Decode(line)
	return r.Kind, r.ID, err
}
