package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A stateful server may refuse a call with the error -32042, whose data lists pages that the user must visit first
// (2025-11-25, Elicitation, URL mode). The stateless generation does not have this error: there, a result asks for
// input instead.

// MetaServer is the member of an elicitation's _meta with the name of the server that asks. Clients can show the name,
// so that a form does not look like a question of Drawbridge.
const MetaServer = "drawbridge/server"

// PrepareRequest returns the params of a server request in the form that may be shown to people and models. It removes
// the members of _meta that only Drawbridge may set. For an elicitation it adds the server's name and other members,
// see MetaServer and MetaSensitive. A sampling request is also passed to Inspect.
func (r ElicitationRules) PrepareRequest(id drawbridge.ServerID, method string,
	params json.RawMessage) json.RawMessage {
	if rawjson.Get(params, "_meta") != nil { // drop members that only Drawbridge may set
		params = rawjson.Apply(params, rawjson.Drop("_meta", MetaSensitive), rawjson.Drop("_meta", MetaOrigin),
			rawjson.Drop("_meta", mcp.MetaFlagged))
	}
	switch {
	case method == mcp.MethodElicitation:
		return r.annotate(id, rawjson.Apply(params, rawjson.Put(rawjson.Quote(string(id)), "_meta", MetaServer)))
	case method == mcp.MethodSampling && r.Inspect != nil:
		return r.Inspect(id, method, params)
	}
	return params
}

// demandedElicitations returns the elicitations in the data of an error -32042. It returns at most
// maxDemandedElicitations+1 of them, so that the caller can detect too many. For any other error it returns none.
func demandedElicitations(err error) (demands []json.RawMessage) {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Raw == nil || mcp.ErrorCode(f.Raw) != mcp.CodeURLElicitation {
		return nil
	}
	for params := range rawjson.Elements(rawjson.Get(f.Raw, "data", "elicitations")) {
		if params[0] == '{' {
			demands = append(demands, params)
		}
		if len(demands) > maxDemandedElicitations {
			break
		}
	}
	return demands
}

// TranslateElicitationError translates the outcome of a stateless caller's call. If err demands elicitations (error
// -32042), it returns an error that names the capabilities that the client must declare. Any other outcome is returned
// unchanged.
func TranslateElicitationError(result drawbridge.Result, err error) (drawbridge.Result, error) {
	demands := demandedElicitations(err)
	if len(demands) == 0 {
		return result, err
	}
	// The error may demand only pages. If a server demands a form too, the required capabilities include forms.
	var url, form json.RawMessage
	for _, params := range demands {
		if rawjson.GetString(params, "mode") == "url" {
			url = json.RawMessage("{}")
		} else {
			form = json.RawMessage("{}")
		}
	}
	required := rawjson.Apply(nil, rawjson.Put(json.RawMessage("{}"), "requiredCapabilities", "elicitation"),
		rawjson.Put(url, "requiredCapabilities", "elicitation", "url"), rawjson.Put(form, "requiredCapabilities",
			"elicitation", "form"))
	f := *drawbridge.AsFault(err)
	f.Raw = mcp.NewErrorObject(mcp.CodeMissingCapability,
		"the user must be asked first, which takes elicitation that the client did not declare", required)
	return result, &f
}

// maxDemandedElicitations is the maximum number of elicitations that one error -32042 may demand; a call with more of
// them fails.
const maxDemandedElicitations = 16

// callWithElicitations makes the call. If the server responds with the error -32042, it asks the user to visit the
// demanded pages. When the user has accepted all of them, it repeats the call.
func (t *statelessCall) callWithElicitations(call drawbridge.Call) (drawbridge.Result, error) {
	for range maxRounds {
		result, err := t.env.Call(t.ctx, call)
		demands := demandedElicitations(err)
		switch {
		case len(demands) > maxDemandedElicitations:
			return drawbridge.Result{}, &drawbridge.Fault{
				Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: t.env.Step,
				Err: fmt.Errorf("the server demands more than %d elicitations at once", maxDemandedElicitations),
			}
		case len(demands) == 0 || !t.clientAcceptsAll(demands):
			return TranslateElicitationError(result, err)
		}
		for _, params := range demands {
			switch refusal := t.sendUserToPage(params); {
			case errors.Is(refusal, errUndeclared): // a later request did not declare it
				return TranslateElicitationError(result, err)
			case refusal != nil:
				return drawbridge.Result{}, refusal
			}
		}
	}
	return drawbridge.Result{}, &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: t.env.Step,
		Err: errors.New("the server demands elicitations again and again"),
	}
}

// clientAcceptsAll reports whether the capabilities in the caller's last request cover all these elicitations, and all
// their URLs are safe.
func (t *statelessCall) clientAcceptsAll(demands []json.RawMessage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !slices.ContainsFunc(demands, func(params json.RawMessage) bool {
		return hasUnsafeURL(params) || !t.clientAccepts(mcp.MethodElicitation, params)
	})
}

// sendUserToPage asks the caller to send the user to a page. It returns nil if the user has accepted, else the reason
// why not.
func (t *statelessCall) sendUserToPage(params json.RawMessage) error {
	answer, err := t.Request(t.ctx, mcp.MethodElicitation, t.env.Rules.PrepareRequest(t.env.Server,
		mcp.MethodElicitation, params))
	switch {
	case errors.Is(err, context.Canceled):
		return t.env.unfinishedFault(err)
	case err != nil:
		return err
	case rawjson.GetString(answer, "action") != "accept":
		return &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked, Step: t.env.Step,
			Err: errors.New("the user did not visit the page that the server demands"),
		}
	}
	return nil
}
