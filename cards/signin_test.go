package cards

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// A house has one server that requires a sign-in.
type house struct{ door *door }

func (h house) WaitingForSignIn() []drawbridge.ServerID {
	if h.door == nil || h.door.signed {
		return nil
	}
	return []drawbridge.ServerID{"github"}
}

func (h house) ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error) {
	if h.door == nil || id != "github" {
		return nil, errors.New("no such server")
	}
	return h.door, nil
}

// A door lets in who comes back, or not.
type door struct {
	signed    bool
	err       error
	elsewhere string
	unbegun   error
}

func (d *door) BeginSignIn(context.Context, bool) (drawbridge.PendingSignIn, error) {
	return d, d.unbegun
}
func (d *door) SignOut(context.Context) (why, err error)      { return nil, nil }
func (d *door) CompleteWithURL(context.Context, string) error { return nil }
func (d *door) Elsewhere() string                             { return d.elsewhere }
func (d *door) AcceptEndpoints(context.Context, drawbridge.SignInEndpoints) error {
	return errors.New("a model accepted them")
}
func (d *door) Status() (drawbridge.CredentialStatus, error) {
	return drawbridge.CredentialStatus{SignedIn: d.signed}, nil
}
func (d *door) SignInAddress() (url, code, issuer string) {
	return "https://issuer/authorize?state=x", "", "https://issuer"
}

func (d *door) Wait(context.Context) error {
	d.signed = d.err == nil
	return d.err
}

// user is a client's user: what they say when they are asked.
type user string

func (user) Notify(context.Context, string, json.RawMessage) error { return nil }

func (u user) Request(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if method != mcp.MethodElicitation || rawjson.GetString(params, "url") != "https://issuer/authorize?state=x" {
		return nil, errors.New("asked for something else")
	}
	return json.RawMessage(`{"action":"` + string(u) + `"}`), nil
}

func TestSignInCard(t *testing.T) {
	const visits, page = `{"elicitation":{"url":{}}}`,
		`{"elicitationId":"sign-in-github","message":"Sign in to use the server \"github\".",` +
			`"mode":"url","url":"https://issuer/authorize?state=x"}`
	asked := &drawbridge.EndpointsNotAcceptedError{Server: "github",
		Endpoints: drawbridge.SignInEndpoints{Page: "https://honest", Token: "https://other"}}
	for name, tt := range map[string]struct {
		era          drawbridge.ProtocolEra
		capabilities string
		says         user
		fails        error
		unbegun      error
		elsewhere    string
		params, want string
	}{
		"which": {params: `{}`, want: `{"waiting":["github"]}`},
		"a client that can show nothing": {params: `{"arguments":{"server":"github"}}`,
			want: `{"server":"github","signed_in":false,"url":"https://issuer/authorize?state=x"}`},
		"endpoints that are not accepted": {unbegun: asked, era: drawbridge.Legacy, capabilities: visits, says: "accept",
			params: `{"arguments":{"server":"github"}}`, want: asked.Error()},
		"endpoints elsewhere": {era: drawbridge.Modern, capabilities: visits, elsewhere: "token endpoint at https://t",
			params: `{"arguments":{"server":"github"}}`,
			want: `{"sign-in":{"method":"elicitation/create","params":` + strings.Replace(page, `.",`,
				`. https://issuer has its token endpoint at https://t.",`, 1) + `}}`},
		"another server": {params: `{"arguments":{"server":"x"}}`, want: `no such server`},
		"no argument": {params: `{"arguments":{"name":"x"}}`,
			want: `unknown argument "name"; the arguments are "server"`},
		"a number": {params: `{"arguments":{"server":5}}`, want: `argument "server" must be a string`},
		"a stateful client": {era: drawbridge.Legacy, capabilities: visits, says: "accept",
			params: `{"arguments":{"server":"github"}}`,
			want:   `{"server":"github","signed_in":true}`},
		"a user who declines": {era: drawbridge.Legacy, capabilities: visits, says: "decline",
			params: `{"arguments":{"server":"github"}}`,
			want:   `The user did not sign in at github.`},
		"a user who comes back with nothing": {era: drawbridge.Legacy, capabilities: visits, says: "accept",
			fails:  errors.New("access_denied"),
			params: `{"arguments":{"server":"github"}}`, want: `access_denied`},
		"a stateless client": {era: drawbridge.Modern, capabilities: visits,
			params: `{"arguments":{"server":"github"}}`,
			want:   `{"sign-in":{"method":"elicitation/create","params":` + page + `}}`},
		"a stateless client that comes back": {era: drawbridge.Modern, capabilities: visits,
			params: `{"arguments":{"server":"github"},"inputResponses":{"sign-in":{"action":"accept"}}}`,
			want:   `{"server":"github","signed_in":true}`},
		"a stateless client whose user declined": {era: drawbridge.Modern, capabilities: visits,
			params: `{"arguments":{"server":"github"},"inputResponses":{"sign-in":{"action":"cancel"}}}`,
			want:   `The user did not sign in at github.`},
	} {
		t.Run(name, func(t *testing.T) {
			c := ControlCards(table{}, house{&door{err: tt.fails, unbegun: tt.unbegun, elsewhere: tt.elsewhere}}, nil)[3]
			call := drawbridge.Call{Caller: ada, Method: mcp.MethodToolsCall,
				Params: json.RawMessage(tt.params), Peer: tt.says}
			call.Caller.Era, call.Caller.Capabilities = tt.era, json.RawMessage(tt.capabilities)
			result, err := c.Run(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			got := string(rawjson.Canonical(rawjson.Get(result.Raw, "structuredContent")))
			switch {
			case rawjson.Get(result.Raw, "isError") != nil:
				got = rawjson.GetString(first(result.Raw), "text")
			case rawjson.GetString(result.Raw, "resultType") != "":
				got = string(rawjson.Canonical(rawjson.Get(result.Raw, "inputRequests")))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
