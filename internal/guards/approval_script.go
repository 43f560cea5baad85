package guards

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

var _ deck.ScriptApprover = (*ApprovalQueue)(nil)

// A ScriptCall is one call of a script in [ApprovalDetails]. Its texts are as unchecked as those of the details.
type ScriptCall struct {
	// Line is the line of the script that makes the call; 0 if it is unknown.
	Line int `json:"line,omitempty"`
	// Card, Server, Tool and Definition are as in ApprovalDetails.
	Card       string `json:"card"`
	Server     string `json:"server,omitempty"`
	Tool       string `json:"tool,omitempty"`
	Definition string `json:"definition"`
	// Arguments are the complete arguments, with likely secrets redacted.
	Arguments json.RawMessage `json:"arguments"`
}

// ApproveScript asks a person about all collected calls of a script with one request. The answer is for exactly these
// calls and this script; a grant for the request covers the same script with the same calls.
func (d *ApprovalQueue) ApproveScript(ctx context.Context, s deck.ScriptApproval) (deck.ApprovalAnswer, error) {
	a, err := newScriptApproval(s)
	if err != nil {
		return deck.ApprovalAnswer{}, refusalFault(s.ApprovalRequest, err, "let the script do less at a time")
	}
	return d.approvePending(ctx, s.ApprovalRequest, a)
}

// newScriptApproval returns the request for approval of the collected calls. It returns an error if a person would have
// to read too much.
func newScriptApproval(s deck.ScriptApproval) (store.PendingApproval, error) {
	c := s.Call.Caller
	size := len(s.Script) + len(s.Input)
	who := []string{c.Kind.String(), c.Principal, sha256Hex([]byte(s.Script)), sha256Hex(s.Input)}
	what := slices.Clone(who)
	counts := map[string]int{}
	var calls []ScriptCall
	for i, one := range s.Requests {
		subject, err := approvalSubject(one.Call)
		if err != nil {
			return store.PendingApproval{}, err
		}
		size += len(subject)
		shown := newApprovalDetails(one)
		target := []string{shown.Server, one.Origin, one.ConfigHash, shown.Tool, shown.Card, shown.Definition}
		who, what = append(who, target...), append(append(what, target...), sha256Hex(subject))
		counts[shown.Card]++
		calls = append(calls, ScriptCall{Line: s.Lines[i], Card: shown.Card, Server: shown.Server, Tool: shown.Tool,
			Definition: shown.Definition, Arguments: redactSecrets(argumentsOnly(subject))})
	}
	if size > maxApprovalArguments {
		return store.PendingApproval{}, fmt.Errorf("the script and its calls have %d bytes, more than a person can be asked to read", size)
	}
	summary, err := json.Marshal(struct {
		Calls     map[string]int  `json:"calls"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
	}{counts, redactSecrets(s.Input)})
	if err != nil {
		return store.PendingApproval{}, err
	}
	call := sha256Hex(rawjson.AppendStrings([]byte("script "), what...))
	details := newApprovalDetails(s.ApprovalRequest)
	details.Digest, details.Arguments, details.Script, details.Calls = call, summary, s.Script, calls
	return newStoredApproval(c, details, call, sha256Hex(rawjson.AppendStrings([]byte("script-tools "), who...)))
}
