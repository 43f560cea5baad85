package cards

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// ScopeSignIn is the scope that a caller needs to start a sign-in of the owner at an MCP server. After the sign-in, all
// callers use the server with the account that signed in.
const ScopeSignIn drawbridge.Scope = "drawbridge:sign-in"

// SignInServers provides the sign-in card with the MCP servers and their sign-in managers.
type SignInServers interface {
	// WaitingForSignIn returns the servers that wait for a sign-in, in order.
	WaitingForSignIn() []drawbridge.ServerID
	// ServerSignIn returns the owner's sign-in manager for a server. The error is the reason why the server has none.
	ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error)
}

//go:embed sign_in.md
var signInText string

// signInTimeout is how long the card waits for a person.
const signInTimeout = 5 * time.Minute

// signInPollInterval is the time between two checks whether the person has signed in elsewhere, such as at the command
// line.
const signInPollInterval = time.Second

// signInInput names the server. If Server is empty, the card lists the servers that wait for a sign-in.
type signInInput struct {
	Server drawbridge.ServerID `json:"server,omitempty" jsonschema:"The server's name."`
}

// signInOutput contains either Waiting, or the server and the state of its sign-in.
type signInOutput struct {
	Waiting  []drawbridge.ServerID `json:"waiting,omitzero"`
	Server   drawbridge.ServerID   `json:"server,omitempty"`
	SignedIn *bool                 `json:"signed_in,omitempty"`
	URL      string                `json:"url,omitempty"`
}

// newSignInCard returns the card that signs the user in at a server.
func newSignInCard(d SignInServers) drawbridge.Card {
	return newShipped(Description[signInInput]{
		Name: "drawbridge_sign_in", NotForScripts: true, Title: "Sign in at a server", Text: signInText,
		Examples:    []signInInput{{}},
		Annotations: &Annotations{Idempotent: true, OpenWorld: true},
		Scopes:      []drawbridge.Scope{ScopeSignIn},
	}, func(ctx context.Context, call drawbridge.Call, in signInInput) (Answer[signInOutput], error) {
		if in.Server == "" {
			return waitingServersAnswer(d.WaitingForSignIn()), nil
		}
		return signInAtServer(ctx, d, call, in.Server)
	})
}

// waitingServersAnswer returns the answer that lists the servers that wait for a sign-in.
func waitingServersAnswer(waiting []drawbridge.ServerID) Answer[signInOutput] {
	names := make([]string, 0, len(waiting))
	for _, id := range waiting {
		names = append(names, string(id))
	}
	text := "No server waits for a sign-in."
	if len(names) > 0 {
		text = "These servers wait for a sign-in: " + strings.Join(names, ", ") +
			". Call again with the name of one of them."
	}
	return Answer[signInOutput]{Text: text, Value: signInOutput{Waiting: append([]drawbridge.ServerID{}, waiting...)}}
}

// signInAtServer asks the caller's client to open the sign-in page for its user, and waits until the user has signed
// in. It asks a stateless client with an input_required result, and waits when the client calls again. If the client
// cannot open web pages, it returns the address of the page.
func signInAtServer(ctx context.Context, d SignInServers, call drawbridge.Call, id drawbridge.ServerID) (
	Answer[signInOutput], error) {
	manager, err := d.ServerSignIn(id)
	if err != nil {
		return Answer[signInOutput]{}, toolError(err)
	}
	opensURLs := mcp.ClientAcceptsRequest(call.Caller.Capabilities, mcp.MethodElicitation,
		json.RawMessage(`{"mode":"url"}`))
	responses := rawjson.Get(call.Params, "inputResponses")
	if responses != nil {
		if state, err := manager.Status(); err == nil && state.SignedIn {
			return signedInAnswer(id), nil
		}
	}
	pending, err := manager.BeginSignIn(ctx, false)
	if err != nil {
		return Answer[signInOutput]{}, toolError(err)
	}
	switch url, _, issuer := pending.SignInAddress(); {
	case opensURLs && call.Caller.Era == drawbridge.Modern && responses == nil:
		return Answer[signInOutput]{Raw: rawjson.Apply(nil,
			rawjson.Put(rawjson.Quote("input_required"), "resultType"),
			rawjson.Put(rawjson.Quote(mcp.MethodElicitation), "inputRequests", "sign-in", "method"),
			rawjson.Put(signInElicitation(id, pending), "inputRequests", "sign-in", "params"))}, nil
	case opensURLs && responses != nil:
		return awaitSignIn(ctx, manager, pending, id, rawjson.Get(responses, "sign-in"))
	case opensURLs && call.Peer != nil:
		response, err := call.Peer.Request(ctx, mcp.MethodElicitation, signInElicitation(id, pending))
		if err != nil {
			return Answer[signInOutput]{}, err
		}
		return awaitSignIn(ctx, manager, pending, id, response)
	default:
		text := fmt.Sprintf("The user signs in at %s on this page: %s\n%s"+
			"Show them the address. The server's tools appear when they are done.", id, url,
			elsewhereText(pending, issuer+" has its ", ". Show them that too.\n"))
		return Answer[signInOutput]{Text: text, Value: signInOutput{Server: id, SignedIn: new(false), URL: url}}, nil
	}
}

// signInElicitation returns the params of the elicitation that opens the sign-in page.
func signInElicitation(id drawbridge.ServerID, pending drawbridge.PendingSignIn) json.RawMessage {
	url, _, issuer := pending.SignInAddress()
	text := fmt.Sprintf("Sign in to use the server %q.", id) + elsewhereText(pending, " "+issuer+" has its ", ".")
	return rawjson.Apply(nil, rawjson.Put(rawjson.Quote("url"), "mode"),
		rawjson.Put(rawjson.Quote("sign-in-"+string(id)), "elicitationId"),
		rawjson.Put(rawjson.Quote(url), "url"),
		rawjson.Put(rawjson.Quote(text), "message"))
}

// elsewhereText returns the list of endpoints in pending.Elsewhere, with the texts before and after around it. It
// returns "" if the list is empty.
func elsewhereText(pending drawbridge.PendingSignIn, before, after string) string {
	if at := pending.Elsewhere(); at != "" {
		return before + at + after
	}
	return ""
}

// awaitSignIn waits until the person has signed in. If response, the client's response to the elicitation, does not
// accept, it returns an error at once.
func awaitSignIn(ctx context.Context, manager drawbridge.SignInManager, pending drawbridge.PendingSignIn,
	id drawbridge.ServerID, response json.RawMessage) (Answer[signInOutput], error) {
	if action := rawjson.GetString(response, "action"); action != "accept" {
		return Answer[signInOutput]{}, ToolError(fmt.Sprintf("The user did not sign in at %s.", id))
	}
	ctx, cancel := context.WithTimeout(ctx, signInTimeout)
	defer cancel()
	for {
		brief, cancel := context.WithTimeout(ctx, signInPollInterval)
		err := pending.Wait(brief)
		ended := brief.Err() == nil || ctx.Err() != nil
		cancel()
		// The person may have signed in before this sign-in began, because a stateless client repeats the call
		// afterwards.
		if state, stateErr := manager.Status(); err == nil || stateErr == nil && state.SignedIn {
			return signedInAnswer(id), nil
		}
		if ended {
			return Answer[signInOutput]{}, toolError(err)
		}
	}
}

// signedInAnswer returns the answer for a completed sign-in.
func signedInAnswer(id drawbridge.ServerID) Answer[signInOutput] {
	return Answer[signInOutput]{
		Text:  fmt.Sprintf("Signed in at %s. Its tools appear in the list in a moment.", id),
		Value: signInOutput{Server: id, SignedIn: new(true)},
	}
}

// toolError returns err as a text for a model and its user. If err is a Fault with a cause, the text is only that of
// the cause.
func toolError(err error) ToolError {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Err != nil {
		return ToolError(f.Err.Error())
	}
	return ToolError(err.Error())
}
