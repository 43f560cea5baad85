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
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// ScopeSignIn is what a caller holds who may sign the owner in at servers. Whoever does that decides whose account all callers
// use.
const ScopeSignIn drawbridge.Scope = "drawbridge:sign-in"

// Doors are the servers as somebody who signs in knows them.
type Doors interface {
	// Barred names the servers that wait for somebody to sign in, in order.
	Barred() []drawbridge.ServerID
	// Access gives how the owner comes to be let in by a server. The error says why nobody signs in there.
	Access(id drawbridge.ServerID) (drawbridge.Access, error)
}

//go:embed sign_in.md
var signInText string

// signInTime is how long a person may take whose client waits for them.
const signInTime = 5 * time.Minute

// lookAgain is how often it is looked whether they have come back another way.
const lookAgain = time.Second

// signInCard signs in at servers.
func signInCard(d Doors) card {
	c := control(face{
		name: "drawbridge_sign_in", title: "Sign in at a server", text: signInText,
		input: `{"type":"object","properties":{"server":{"type":"string","description":"The server's name."}},` +
			`"additionalProperties":false,"examples":[{}]}`,
		output: `{"type":"object","properties":{"waiting":{"type":"array","items":{"type":"string"}},"server":{"type":"string"},` +
			`"signed_in":{"type":"boolean"},"url":{"type":"string"}},"required":[]}`,
		hints: `{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":true}`,
	}, func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		id, why := serverIn(call.Params)
		switch {
		case why != "":
			return refuse(why)
		case id == "":
			return waiting(d.Barred())
		}
		return signIn(ctx, d, call, id)
	})
	c.spec.Scopes, c.spec.Sandbox = []drawbridge.Scope{ScopeSignIn}, false
	return c
}

// serverIn reads the card's arguments.
func serverIn(params json.RawMessage) (id drawbridge.ServerID, why string) {
	arguments := wire.Get(params, "arguments")
	for m := range wire.Members(arguments) {
		name, _ := wire.Text(m.Name)
		said, ok := wire.Text(m.Value)
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

func waiting(barred []drawbridge.ServerID) (drawbridge.Result, error) {
	names := make([]string, 0, len(barred))
	for _, id := range barred {
		names = append(names, string(id))
	}
	text := "No server waits for somebody to sign in."
	if len(names) > 0 {
		text = "These servers wait for somebody to sign in: " + strings.Join(names, ", ") + ". Call again with one of them."
	}
	return answer(text, map[string]any{"waiting": names})
}

// signIn takes the caller's user to where they sign in, in the way that the caller can.
func signIn(ctx context.Context, d Doors, call drawbridge.Call, id drawbridge.ServerID) (drawbridge.Result, error) {
	access, err := d.Access(id)
	if err != nil {
		return refuse(sentence(err))
	}
	visit := wire.MayAsk(call.Caller.Capabilities, wire.MethodElicitation, json.RawMessage(`{"mode":"url"}`))
	responses := wire.Get(call.Params, "inputResponses")
	if responses != nil {
		if state, err := access.State(); err == nil && state.Signed {
			return signedIn(id)
		}
	}
	begun, err := access.SignIn(ctx, false)
	if err != nil {
		return refuse(sentence(err))
	}
	switch url, _, _ := begun.Place(); {
	case visit && call.Caller.Era == drawbridge.Modern && responses == nil:
		return drawbridge.Result{Raw: wire.Apply(nil, wire.Put(wire.Quote("input_required"), "resultType"),
			wire.Put(wire.Quote(wire.MethodElicitation), "inputRequests", "sign-in", "method"),
			wire.Put(page(id, url), "inputRequests", "sign-in", "params"))}, nil
	case visit && responses != nil:
		return awaitSignIn(ctx, access, begun, id, wire.Get(responses, "sign-in"))
	case visit && call.Peer != nil:
		said, err := call.Peer.Ask(ctx, wire.MethodElicitation, page(id, url))
		if err != nil {
			return drawbridge.Result{}, err
		}
		return awaitSignIn(ctx, access, begun, id, said)
	default:
		return answer(fmt.Sprintf("The user signs in at %s on this page: %s\nShow them the address. The server's tools appear when they are done.", id, url),
			map[string]any{"server": id, "signed_in": false, "url": url})
	}
}

// page is the elicitation that takes a user to where they sign in.
func page(id drawbridge.ServerID, url string) json.RawMessage {
	return wire.Apply(nil, wire.Put(wire.Quote("url"), "mode"), wire.Put(wire.Quote("sign-in-"+string(id)), "elicitationId"),
		wire.Put(wire.Quote(url), "url"), wire.Put(wire.Quote(fmt.Sprintf("Sign in to use the server %q.", id)), "message"))
}

// awaitSignIn waits for a person whose client has said that they go there.
func awaitSignIn(ctx context.Context, access drawbridge.Access, begun drawbridge.SignIn, id drawbridge.ServerID, said json.RawMessage) (drawbridge.Result, error) {
	if action := wire.GetText(said, "action"); action != "accept" {
		return refuse(fmt.Sprintf("The user did not sign in at %s.", id))
	}
	ctx, cancel := context.WithTimeout(ctx, signInTime)
	defer cancel()
	for {
		brief, cancel := context.WithTimeout(ctx, lookAgain)
		err := begun.Wait(brief)
		over := brief.Err() == nil || ctx.Err() != nil
		cancel()
		// The person may have been back before this was begun: the client asks again when they are on their way.
		if state, stateErr := access.State(); err == nil || stateErr == nil && state.Signed {
			return signedIn(id)
		}
		if over {
			return refuse(sentence(err))
		}
	}
}

func signedIn(id drawbridge.ServerID) (drawbridge.Result, error) {
	return answer(fmt.Sprintf("Signed in at %s. Its tools appear in the list in a moment.", id),
		map[string]any{"server": id, "signed_in": true})
}

// sentence is what went wrong, for a model and its user.
func sentence(err error) string {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Err != nil {
		return f.Err.Error()
	}
	return err.Error()
}
