package guards

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// ApprovalDetails describes a call to the person who decides about it. Names and arguments are unchecked text from
// clients and servers. They may contain any characters, so they must be made printable before they are displayed.
type ApprovalDetails struct {
	// Caller is the principal of the caller, and Kind is the kind of caller. Door is the transport. Client is the name
	// and version that the client declared.
	Caller string `json:"caller"`
	Kind   string `json:"kind"`
	Door   string `json:"door,omitempty"`
	Client string `json:"client,omitempty"`
	Method string `json:"method"`
	// Card is the called name, and Tool is the name that the server uses. For one of Drawbridge's own tools, Server is
	// empty.
	Card   string `json:"card"`
	Server string `json:"server,omitempty"`
	Tool   string `json:"tool,omitempty"`
	// Definition is the SHA-256 of the card's definition, in hexadecimal. Digest is the SHA-256 of the unredacted
	// arguments.
	Definition string `json:"definition"`
	Digest     string `json:"digest"`
	// Arguments are the complete arguments, with likely secrets redacted. For a method without arguments they are the
	// params. If the call answers earlier requests of its server, they are an object with "arguments" and
	// "inputResponses".
	Arguments json.RawMessage `json:"arguments"`
	// Reason is the reason for asking a person, and Rule is the rule that requires approval. Either may be empty.
	Reason string `json:"reason,omitempty"`
	Rule   string `json:"rule,omitempty"`
	// Script is the whole script whose collected calls are to be approved, and Effects are these calls by tool.
	// Arguments then has the number of calls by tool, and the arguments of the script. Both are empty for a single
	// call.
	Script  string         `json:"script,omitempty"`
	Effects []ScriptEffect `json:"effects,omitempty"`
}

// RedactedJSON returns the details as JSON, for storage after the call. It applies the redaction of the audit log. This
// also redacts values that the person had to see for the decision, such as a password in a command.
func (d ApprovalDetails) RedactedJSON() ([]byte, error) {
	var rules audit.RedactionRules
	d.Arguments = rules.Redact(d.Arguments)
	for _, text := range []*string{&d.Client, &d.Card, &d.Tool, &d.Reason, &d.Script} {
		*text = rules.RedactText(*text)
	}
	d.Effects = slices.Clone(d.Effects)
	for i, e := range d.Effects {
		d.Effects[i] = e.redact(&rules)
	}
	return json.Marshal(d)
}

// maxApprovalArguments is the maximum size of arguments that a person is asked to approve, in bytes. A call with larger
// arguments is refused, because a person would not read them.
const maxApprovalArguments = 256 << 10

// newPendingApproval returns the request for approval of a call. It returns an error if the params are too large or not
// valid JSON.
func newPendingApproval(r deck.ApprovalRequest) (store.PendingApproval, error) {
	subject, err := approvalSubject(r.Call)
	if err != nil {
		return store.PendingApproval{}, err
	}
	c, shown := r.Call.Caller, newApprovalDetails(r)
	shown.Digest, shown.Arguments = sha256Hex(subject), redactSecrets(argumentsOnly(subject))
	who := []string{shown.Kind, c.Principal, r.Call.Method, shown.Server, r.Origin, r.ConfigHash, shown.Tool, shown.Card,
		shown.Definition}
	call := sha256Hex(rawjson.AppendStrings([]byte("call "), append(who, shown.Digest)...))
	return newStoredApproval(c, shown, call, grantedCard(r.Rule, call, sha256Hex(rawjson.AppendStrings([]byte("card "), who...))))
}

// newApprovalDetails returns the details of a call without its arguments.
func newApprovalDetails(r deck.ApprovalRequest) ApprovalDetails {
	c, s := r.Call.Caller, r.Spec
	return ApprovalDetails{
		Caller: c.Principal, Kind: c.Kind.String(), Door: string(c.Transport), Client: clientLabel(c),
		Method: r.Call.Method, Card: string(s.Name), Server: string(s.Server), Tool: s.Tool,
		Definition: sha256Hex(s.Definition), Reason: r.Reason, Rule: r.Rule,
	}
}

// grantedCard returns the hash to which a grant with any arguments is bound: card, or the hash of the call if the guard
// of information flow asks. Such a grant does not endorse other values.
func grantedCard(rule, call, card string) string {
	if asksForFlow(rule) {
		return sha256Hex([]byte("flow " + call))
	}
	return card
}

// asksForFlow reports whether the guard of information flow is one of the rules that require an approval.
func asksForFlow(rule string) bool { return slices.Contains(strings.Split(rule, "; "), FlowRule) }

// newStoredApproval returns the request in the form in which the store holds it. call and card are its hashes, see
// store.PendingApproval.
func newStoredApproval(c drawbridge.Caller, details ApprovalDetails, call, card string) (store.PendingApproval, error) {
	shown, err := json.Marshal(details)
	if err != nil {
		return store.PendingApproval{}, fmt.Errorf("show a person what is called: %w", err)
	}
	return store.PendingApproval{Principal: c.Principal, Session: sessionHash(c), Shown: shown, Call: call,
		Card: card}, nil
}

// sessionHash returns the hash that identifies the caller's session in the store; empty without a session.
func sessionHash(c drawbridge.Caller) string {
	if c.Session == "" {
		return ""
	}
	return sha256Hex([]byte("session " + c.Session))
}

func sha256Hex(b []byte) string {
	hash := sha256.Sum256(b)
	return hex.EncodeToString(hash[:])
}

// approvalSubject returns the part of a call that a person approves: the params without the members that differ each
// time the call is sent. Members are not sorted, since servers may disagree about which of two members with equal names
// counts. Answers to the server's requests are included: an approval of the first request does not cover answers that
// the client sends later.
func approvalSubject(call drawbridge.Call) ([]byte, error) {
	params := rawjson.Apply(call.Params, rawjson.Drop("_meta"), rawjson.Drop("requestState"))
	switch call.Method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet:
		// The approval identifies the card already. The caller may have used another spelling of its name.
		params = rawjson.Apply(params, rawjson.Drop("name"))
	}
	if len(params) > maxApprovalArguments {
		return nil, fmt.Errorf("its arguments have %d bytes, more than a person can be asked to read", len(params))
	}
	if len(params) == 0 {
		return []byte("{}"), nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, params); err != nil {
		return nil, fmt.Errorf("read the arguments: %w", err)
	}
	return b.Bytes(), nil
}

// argumentsOnly returns the value of "arguments" if the subject has no other members. Otherwise it returns the whole
// subject.
func argumentsOnly(subject []byte) json.RawMessage {
	var only json.RawMessage
	n := 0
	for m := range rawjson.Members(subject) {
		n++
		if m.HasName("arguments") {
			only = m.Value
		}
	}
	if n == 1 && only != nil {
		return only
	}
	return subject
}

// clientLabel returns the name and version that the client declared.
func clientLabel(c drawbridge.Caller) string {
	name, version := rawjson.GetString(c.Client, "name"), rawjson.GetString(c.Client, "version")
	return strings.TrimSpace(fmt.Sprintf("%.100s %.50s", name, version))
}
