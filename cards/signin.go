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

// ScopeSignIn is what a caller holds who may sign the owner in at servers. Whoever does that decides whose account all
// callers use.
const ScopeSignIn drawbridge.Scope = "drawbridge:sign-in"

// SignInServers are the servers as somebody who signs in knows them.
type SignInServers interface {
	// WaitingForSignIn names the servers that wait for somebody to sign in, in order.
	WaitingForSignIn() []drawbridge.ServerID
	// ServerSignIn gives how the owner comes to be let in by a server. The error says why nobody signs in there.
	ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error)
}

//go:embed sign_in.md
var signInText string

// signInTimeout is how long a person may take whose client waits for them.
const signInTimeout = 5 * time.Minute

// signInPollInterval is how often it is looked whether they have come back another way.
const signInPollInterval = time.Second

// signInCard signs in at servers.
func signInCard(d SignInServers) shippedCard {
	c := newControlCard(cardDescription{
		name: "drawbridge_sign_in", title: "Sign in at a server", text: signInText,
		input: `{"type":"object","properties":{"server":{"type":"string","description":"The server's name."}},` +
			`"additionalProperties":false,"examples":[{}]}`,
		output: `{"type":"object","properties":{"waiting":{"type":"array","items":{"type":"string"}},"server":{"type":"string"},` +
			`"signed_in":{"type":"boolean"},"url":{"type":"string"}},"required":[]}`,
		hints: `{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":true}`,
	}, func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		id, why := parseServerArgument(call.Params)
		switch {
		case why != "":
			return newToolError(why)
		case id == "":
			return waitingServersResult(d.WaitingForSignIn())
		}
		return signInAtServer(ctx, d, call, id)
	})
	c.spec.Scopes, c.spec.Sandbox = []drawbridge.Scope{ScopeSignIn}, false
	return c
}

// parseServerArgument reads the card's arguments.
func parseServerArgument(params json.RawMessage) (id drawbridge.ServerID, why string) {
	arguments := rawjson.Get(params, "arguments")
	for m := range rawjson.Members(arguments) {
		name, _ := rawjson.DecodeString(m.Name)
		said, ok := rawjson.DecodeString(m.Value)
		switch {
		case name != "server":
			return "", fmt.Sprintf("There is no argument %q: say \"server\", or nothing.", name)
		case !ok:
			return "", "\"server\" must be a string."
		}
		id = drawbridge.ServerID(said)
	}
	return id, ""
}

func waitingServersResult(barred []drawbridge.ServerID) (drawbridge.Result, error) {
	names := make([]string, 0, len(barred))
	for _, id := range barred {
		names = append(names, string(id))
	}
	text := "No server waits for somebody to sign in."
	if len(names) > 0 {
		text = "These servers wait for somebody to sign in: " + strings.Join(names, ", ") +
			". Call again with one of them."
	}
	return newResult(text, map[string]any{"waiting": names})
}

// signInAtServer takes the caller's user to where they sign in, in the way that the caller can.
func signInAtServer(ctx context.Context, d SignInServers, call drawbridge.Call, id drawbridge.ServerID) (
	drawbridge.Result, error) {
	access, err := d.ServerSignIn(id)
	if err != nil {
		return newToolError(errorText(err))
	}
	visit := mcp.ClientAcceptsRequest(call.Caller.Capabilities, mcp.MethodElicitation,
		json.RawMessage(`{"mode":"url"}`))
	responses := rawjson.Get(call.Params, "inputResponses")
	if responses != nil {
		if state, err := access.Status(); err == nil && state.SignedIn {
			return signedInResult(id)
		}
	}
	begun, err := access.BeginSignIn(ctx, false)
	if err != nil {
		return newToolError(errorText(err))
	}
	switch url, _, _ := begun.SignInAddress(); {
	case visit && call.Caller.Era == drawbridge.Modern && responses == nil:
		return drawbridge.Result{Raw: rawjson.Apply(nil, rawjson.Put(rawjson.Quote("input_required"), "resultType"),
			rawjson.Put(rawjson.Quote(mcp.MethodElicitation), "inputRequests", "sign-in", "method"),
			rawjson.Put(signInElicitation(id, url), "inputRequests", "sign-in", "params"))}, nil
	case visit && responses != nil:
		return awaitSignIn(ctx, access, begun, id, rawjson.Get(responses, "sign-in"))
	case visit && call.Peer != nil:
		said, err := call.Peer.Request(ctx, mcp.MethodElicitation, signInElicitation(id, url))
		if err != nil {
			return drawbridge.Result{}, err
		}
		return awaitSignIn(ctx, access, begun, id, said)
	default:
		return newResult(
			fmt.Sprintf("The user signs in at %s on this page: %s\nShow them the address. The server's tools appear when they are done.", id, url),
			map[string]any{"server": id, "signed_in": false, "url": url})
	}
}

// signInElicitation is the elicitation that takes a user to where they sign in.
func signInElicitation(id drawbridge.ServerID, url string) json.RawMessage {
	return rawjson.Apply(nil, rawjson.Put(rawjson.Quote("url"), "mode"),
		rawjson.Put(rawjson.Quote("sign-in-"+string(id)), "elicitationId"),
		rawjson.Put(rawjson.Quote(url), "url"), rawjson.Put(rawjson.Quote(fmt.Sprintf("Sign in to use the server %q.",
			id)), "message"))
}

// awaitSignIn waits for a person whose client has said that they go there.
func awaitSignIn(ctx context.Context, access drawbridge.SignInManager, begun drawbridge.PendingSignIn,
	id drawbridge.ServerID, said json.RawMessage) (drawbridge.Result, error) {
	if action := rawjson.GetString(said, "action"); action != "accept" {
		return newToolError(fmt.Sprintf("The user did not sign in at %s.", id))
	}
	ctx, cancel := context.WithTimeout(ctx, signInTimeout)
	defer cancel()
	for {
		brief, cancel := context.WithTimeout(ctx, signInPollInterval)
		err := begun.Wait(brief)
		over := brief.Err() == nil || ctx.Err() != nil
		cancel()
		// The person may have been back before this was begun: the client asks again when they are on their way.
		if state, stateErr := access.Status(); err == nil || stateErr == nil && state.SignedIn {
			return signedInResult(id)
		}
		if over {
			return newToolError(errorText(err))
		}
	}
}

func signedInResult(id drawbridge.ServerID) (drawbridge.Result, error) {
	return newResult(fmt.Sprintf("Signed in at %s. Its tools appear in the list in a moment.", id),
		map[string]any{"server": id, "signed_in": true})
}

// errorText is what went wrong, for a model and its user.
func errorText(err error) string {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Err != nil {
		return f.Err.Error()
	}
	return err.Error()
}
