package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A RecordKind is the kind of a record.
type RecordKind string

// The kinds of records.
const (
	// Call is the record of a call. If the guards allowed the call, the record is written before the call is sent, and
	// has no Outcome. The outcome is added to it before the record is stored, or follows in a Done record. If the call
	// ended before it was sent, for example because a guard denied it, the record has an Outcome from the beginning.
	Call RecordKind = "call"
	// Done is the record of the outcome of a call that was sent, if the record of the call was stored before the
	// outcome was known. It has the same ID as the record of the call.
	Done RecordKind = "done"
	// AdminAction is a change by a person to data that guards depend on, such as accepting a definition. It is
	// written before the change is made. Method is the command, and Card its subject. A Done record with the same ID
	// contains the outcome.
	AdminAction RecordKind = "act"
	// Shield is an action of the shield concerning a definition, a result or a server.
	Shield RecordKind = "shield"
	// Note describes an event that concerns the audit itself, for example that a crash cut off records.
	Note RecordKind = "note"
	// Anchor names the last record of another hash chain in the same store. Package store writes it.
	Anchor RecordKind = "anchor"
)

// An Outcome is the outcome of a call. The zero value means that no outcome is recorded: the call is still running,
// or the process ended during the call.
type Outcome string

// The outcomes of calls.
const (
	OK Outcome = "ok"
	// IsError means that the result is marked as an error.
	IsError Outcome = "is_error"
	// Asked means that the result asks the caller for input. Task means that the result contains the ID of a task in
	// which the server continues the work.
	Asked Outcome = "asked"
	Task  Outcome = "task"
	// Fault means that the call failed, before or after it was sent. Ambiguous means that the call failed and may
	// nevertheless have had its effect.
	Fault     Outcome = "fault"
	Ambiguous Outcome = "ambiguous"
	// Refused means that a guard denied the call. Unknown means that the called name does not exist, or that it is
	// hidden from the caller.
	Refused Outcome = "refused"
	Unknown Outcome = "unknown"
)

// Failed reports whether the call failed. It returns true for every outcome except OK, Asked and Task, and so also
// for the zero value.
func (o Outcome) Failed() bool {
	switch o {
	case OK, Asked, Task:
		return false
	}
	return true
}

// A Caller describes the caller in a record.
type Caller struct {
	// Kind is the kind of caller, such as "external"; Principal identifies the caller.
	Kind      string `json:"kind,omitzero"`
	Principal string `json:"principal,omitzero"`
	// Client is the name and the version that the client declared. Session is a hash that distinguishes sessions. It
	// cannot be used as a session key.
	Client  string `json:"client,omitzero"`
	Session string `json:"session,omitzero"`
	// Thread and Run identify the agent's thread and run in which the call was made.
	Thread string `json:"thread,omitzero"`
	Run    string `json:"run,omitzero"`
	// Rights are the rights that the agent's session left to the caller, as the text of a JSON object; see
	// [drawbridge.AgentRights].
	Rights string `json:"rights,omitzero"`
}

// A Record is one record of the audit, encoded as one line of JSON. Empty members are omitted.
type Record struct {
	ID   string     `json:"id"`
	Kind RecordKind `json:"kind"`
	At   time.Time  `json:"at"`
	// Parent is the ID of the outer call that made this call; empty if there is none.
	Parent string `json:"parent,omitzero"`
	Caller Caller `json:"caller,omitzero"`
	// Transport is "stdio" or "http"; empty for a call within the program.
	Transport string `json:"door,omitzero"`
	Method    string `json:"method,omitzero"`
	// ViaCard is "call_tool" if the client called the tool through that card; empty for a direct call.
	ViaCard string `json:"through,omitzero"`
	// Card is the called name or URI as the caller knows it. Tool is the tool's name at the Server. Likely secrets
	// in a URI are removed.
	Card   string `json:"card,omitzero"`
	Server string `json:"server,omitzero"`
	Tool   string `json:"tool,omitzero"`
	// Definition is the SHA-256 of the card's definition at the time of the call, in hexadecimal.
	Definition string `json:"definition,omitzero"`
	// Arguments contains the caller's arguments in a record to be written, and the redacted arguments in a decoded
	// record. Digest is the SHA-256 of the caller's arguments in hexadecimal, and Size their length in bytes.
	// AppendRecord computes Digest and Size, and ignores their values in the record to be written.
	Arguments json.RawMessage `json:"arguments,omitzero"`
	Digest    string          `json:"digest,omitzero"`
	Size      int             `json:"size,omitzero"`
	// Effect is the effect of the verdict: "allow", "ask" or "deny". Rule names the rule or guard that decided, and
	// Reason is the reason for the verdict.
	Effect string `json:"effect,omitzero"`
	Rule   string `json:"rule,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Approval is the ID of the answered approval request, or of the grant. By names the person who answered and the
	// place of the answer. Both are empty if the call needed no approval.
	Approval string `json:"approval,omitzero"`
	By       string `json:"by,omitzero"`
	// Rewritten names the interceptors that replaced the arguments or the result, each with the SHA-256 of the old
	// value.
	Rewritten string `json:"rewritten,omitzero"`
	// Label is the label of the run with which the call was made, such as "untrusted, private", and Origins are its
	// first sources. Both are empty if the run had read only what is trusted and not private.
	Label   string   `json:"label,omitzero"`
	Origins []string `json:"origins,omitzero"`
	// Outcome is the outcome of the call, and Code the code of its fault. Duration is the time since the call began,
	// and Bytes the size of the result.
	Outcome  Outcome       `json:"outcome,omitzero"`
	Code     string        `json:"code,omitzero"`
	Duration time.Duration `json:"ns,omitzero"`
	Bytes    int           `json:"bytes,omitzero"`
}

// maxText is the maximum length in bytes of each text in a record except Arguments. A limit is necessary because
// callers and servers choose the texts.
const maxText = 512

// AppendRecord appends the redacted record to dst as one line of JSON, without the line feed. It does not change rec.
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
	w.appendText(`,"rewritten":`, rec.Rewritten)
	w.appendLabel(rec)
	w.appendOutcome(rec)
	return w.dst
}

// AppendOutcome appends the outcome of a call to dst, in the form in which it ends the record of the call: it replaces
// the last byte of the record that AppendRecord encoded without an outcome.
func (r *RedactionRules) AppendOutcome(dst []byte, rec *Record) []byte {
	w := recordWriter{dst, r}
	w.appendOutcome(rec)
	return w.dst
}

// appendOutcome appends the members of the outcome, and the end of the record.
func (w *recordWriter) appendOutcome(rec *Record) {
	w.appendText(`,"outcome":`, string(rec.Outcome))
	w.appendText(`,"code":`, rec.Code)
	w.appendNumber(`,"ns":`, int64(rec.Duration))
	w.appendNumber(`,"bytes":`, int64(rec.Bytes))
	w.appendRaw("}")
}

// MaxOrigins is the maximum number of sources in Record.Origins.
const MaxOrigins = 4

// appendLabel appends the label of the run. The names of sources come from servers and files.
func (w *recordWriter) appendLabel(rec *Record) {
	if rec.Label == "" {
		return
	}
	w.appendText(`,"label":`, rec.Label)
	for i, origin := range rec.Origins[:min(len(rec.Origins), MaxOrigins)] {
		before := `,"origins":[`
		if i > 0 {
			before = ","
		}
		origin, _ = w.rules.redactSecrets(origin)
		w.appendRaw(before)
		w.appendQuoted(clipText(origin))
	}
	if len(rec.Origins) > 0 {
		w.appendRaw("]")
	}
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
	w.appendRedactedText(`,"rights":`, c.Rights)
	if len(w.dst) == start {
		w.dst = w.dst[:before]
		return
	}
	w.dst[start] = '{' // replace the first comma
	w.appendRaw("}")
}

// clipText cuts a text to at most maxText bytes, at a character boundary.
func clipText(text string) string { return safetext.Truncate(text, maxText, safetext.Bytes, "…") }

// DecodeRecord decodes a record that AppendRecord encoded. The error does not contain parts of the record.
func DecodeRecord(line []byte) (Record, error) {
	var rec Record
	if err := json.Unmarshal(line, &rec); err != nil {
		return Record{}, errors.New("read a record of the audit: invalid JSON")
	}
	if rec.ID == "" || rec.Kind == "" {
		return Record{}, fmt.Errorf("read a record of the audit: it has no id or no kind")
	}
	if rec.Tool == "" && rec.Server != "" {
		rec.Tool = rec.Card
	}
	return rec, nil
}
