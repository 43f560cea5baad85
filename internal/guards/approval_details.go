package guards

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// ApprovalDetails are what a person is shown of a call. None of it is checked: names and arguments are what others
// wrote, with whatever characters, and are to be shown so that none of them does anything.
type ApprovalDetails struct {
	// Caller is the principal, Kind which kind of caller, Door where they came in, Client what their program says that
	// it is.
	Caller string `json:"caller"`
	Kind   string `json:"kind"`
	Door   string `json:"door,omitempty"`
	Client string `json:"client,omitempty"`
	Method string `json:"method"`
	// Card is the name that is called, Tool the one on its Server; a shipped card has no server.
	Card   string `json:"card"`
	Server string `json:"server,omitempty"`
	Tool   string `json:"tool,omitempty"`
	// Definition is the SHA-256 of the card's definition, in hexadecimal; Digest that of the arguments as they are.
	Definition string `json:"definition"`
	Digest     string `json:"digest"`
	// Arguments are whole, but for what looks like a secret; for a method that has none they are its params. Of a call
	// that goes on with answers to what its server asked, they are an object with "arguments" and "inputResponses".
	Arguments json.RawMessage `json:"arguments"`
	// Reason says why a person is asked, Rule which rule wants it; either may be empty.
	Reason string `json:"reason,omitempty"`
	Rule   string `json:"rule,omitempty"`
}

// RedactedJSON gives what may be kept of it when the call is over, as JSON: by the rules of the audit, which also hide
// what a person had to see in order to judge the call, such as a password within a command.
func (d ApprovalDetails) RedactedJSON() ([]byte, error) {
	var rules audit.RedactionRules
	d.Arguments = rules.Redact(d.Arguments)
	for _, text := range []*string{&d.Client, &d.Card, &d.Tool, &d.Reason} {
		*text = rules.RedactText(*text)
	}
	return json.Marshal(d)
}

// maxApprovalArguments is how many bytes of arguments a person may be asked about: what nobody reads to its end,
// nobody allows.
const maxApprovalArguments = 256 << 10

// newPendingApproval says what is asked. The error says why a person cannot be asked that.
func newPendingApproval(r deck.ApprovalRequest) (store.PendingApproval, error) {
	subject, err := approvalSubject(r.Call)
	if err != nil {
		return store.PendingApproval{}, err
	}
	c, s := r.Call.Caller, r.Spec
	arguments, definition := sha256Hex(subject), sha256Hex(s.Definition)
	who := []string{c.Kind.String(), c.Principal, r.Call.Method, string(s.Server), r.Origin, r.ConfigHash, s.Tool,
		string(s.Name), definition}
	shown, err := json.Marshal(ApprovalDetails{
		Caller: c.Principal, Kind: c.Kind.String(), Door: string(c.Transport), Client: clientLabel(c),
		Method: r.Call.Method,
		Card:   string(s.Name), Server: string(s.Server), Tool: s.Tool, Definition: definition, Digest: arguments,
		Arguments: redactSecrets(argumentsOnly(subject)), Reason: r.Reason, Rule: r.Rule,
	})
	if err != nil {
		return store.PendingApproval{}, fmt.Errorf("show a person what is called: %w", err)
	}
	a := store.PendingApproval{
		Principal: c.Principal, Shown: shown,
		Call: sha256Hex(rawjson.AppendStrings([]byte("call "), append(who, arguments)...)),
		Card: sha256Hex(rawjson.AppendStrings([]byte("card "), who...)),
	}
	if c.Session != "" {
		a.Session = sha256Hex([]byte("session " + c.Session))
	}
	return a, nil
}

func sha256Hex(b []byte) string {
	hash := sha256.Sum256(b)
	return hex.EncodeToString(hash[:])
}

// approvalSubject gives what of a call a person judges: its params without what belongs to one sending of it. Nothing
// in it is put in order: of a name that is there twice nobody knows which one the server will believe. Answers to what
// the server asked belong to it: a yes for the call as it began is none for what a client answers in its course.
func approvalSubject(call drawbridge.Call) ([]byte, error) {
	params := rawjson.Apply(call.Params, rawjson.Drop("_meta"), rawjson.Drop("requestState"))
	switch call.Method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet:
		// the card's is known: the caller may have used another style
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

// argumentsOnly gives the arguments, where they are all there is.
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

// clientLabel is what the caller's program says that it is.
func clientLabel(c drawbridge.Caller) string {
	name, version := rawjson.GetString(c.Client, "name"), rawjson.GetString(c.Client, "version")
	return strings.TrimSpace(fmt.Sprintf("%.100s %.50s", name, version))
}
