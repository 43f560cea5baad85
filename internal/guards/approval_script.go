package guards

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
	r := deck.ApprovalRequest{Call: s.Call, Spec: s.Spec, StillValid: func() bool {
		return !slices.ContainsFunc(s.Requests, func(r deck.ApprovalRequest) bool { return !r.StillValid() })
	}}
	r.Reason = joinReasons(s.Requests, func(r deck.ApprovalRequest) string { return r.Reason })
	r.Rule = joinReasons(s.Requests, func(r deck.ApprovalRequest) string { return r.Rule })
	a, err := newScriptApproval(s, r)
	if err != nil {
		return deck.ApprovalAnswer{}, refusalFault(r, err, "let the script do less at a time")
	}
	return d.approvePending(ctx, r, a)
}

// joinReasons joins the distinct texts of requests.
func joinReasons(requests []deck.ApprovalRequest, of func(deck.ApprovalRequest) string) string {
	var all []string
	for _, r := range requests {
		if text := of(r); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

// newScriptApproval returns the request for approval of the collected calls. It returns an error if a person would have
// to read too much.
func newScriptApproval(s deck.ScriptApproval, r deck.ApprovalRequest) (store.PendingApproval, error) {
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
		definition := sha256Hex(one.Spec.Definition)
		target := []string{string(one.Spec.Server), one.Origin, one.ConfigHash, one.Spec.Tool, string(one.Spec.Name), definition}
		who, what = append(who, target...), append(append(what, target...), sha256Hex(subject))
		counts[string(one.Spec.Name)]++
		calls = append(calls, ScriptCall{Line: s.Lines[i], Card: string(one.Spec.Name), Server: string(one.Spec.Server),
			Tool: one.Spec.Tool, Definition: definition, Arguments: redactSecrets(argumentsOnly(subject))})
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
	shown, err := json.Marshal(ApprovalDetails{
		Caller: c.Principal, Kind: c.Kind.String(), Door: string(c.Transport), Client: clientLabel(c),
		Method: s.Call.Method, Card: string(s.Spec.Name), Definition: sha256Hex(s.Spec.Definition), Digest: call,
		Arguments: summary, Reason: r.Reason, Rule: r.Rule, Script: s.Script, Calls: calls,
	})
	if err != nil {
		return store.PendingApproval{}, fmt.Errorf("show a person what is called: %w", err)
	}
	a := store.PendingApproval{Principal: c.Principal, Shown: shown, Call: call,
		Card: sha256Hex(rawjson.AppendStrings([]byte("script-tools "), who...))}
	if c.Session != "" {
		a.Session = sha256Hex([]byte("session " + c.Session))
	}
	return a, nil
}
