package oauthtest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	protocol "github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The headers in which serveMCP passes the subject, scope and client of the token to the tools. Headers of these names
// from a client are removed.
const (
	headerSubject = "Idp-Subject"
	headerScope   = "Idp-Scope"
	headerClient  = "Idp-Client"
)

// toolServers is the MCP server in two variants: legacy speaks the stateful protocol versions, modern the stateless
// one. Its tool "whoami" returns the subject of the token. Its tool "secret_tool" requires an additional scope.
type toolServers struct{ legacy, modern http.Handler }

func newTools() *toolServers {
	var old []string
	for _, v := range mcp.SupportedProtocolVersions() {
		if v < "2026" {
			old = append(old, v)
		}
	}
	legacy, modern := toolServer(old), toolServer(nil)
	return &toolServers{
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return legacy }, nil),
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return modern },
			&mcp.StreamableHTTPOptions{Stateless: true}),
	}
}

// A WhoamiResult is the result of the tool whoami, which sends it as structured content and as text.
type WhoamiResult struct {
	Subject string   `json:"sub"`
	Client  string   `json:"client_id"`
	Scopes  []string `json:"scopes"`
}

func toolServer(versions []string) *mcp.Server {
	type nothing struct{}
	s := mcp.NewServer(&mcp.Implementation{Name: "protected", Version: "1.0.0"},
		&mcp.ServerOptions{SupportedProtocolVersions: versions})
	mcp.AddTool(s, &mcp.Tool{Name: "whoami", Description: "Says who the token is of."},
		func(_ context.Context, req *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, WhoamiResult, error) {
			h := req.Extra.Header
			return nil, WhoamiResult{h.Get(headerSubject), h.Get(headerClient), strings.Fields(h.Get(headerScope))}, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "secret_tool", Description: "Needs a further scope."},
		func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "the secret"}}}, nil, nil
		})
	return s
}

// serveMCP passes a request with a valid token to the MCP server, and refuses other requests. If Server.OpenUntilCall
// is set, it also passes requests without a token, except tools/call.
func (p *Provider) serveMCP(w http.ResponseWriter, r *http.Request) {
	k := p.currentKnobs()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	for _, name := range []string{headerSubject, headerScope, headerClient} {
		r.Header.Del(name)
	}
	method, tool := calledTool(body)
	if !k.Server.OpenUntilCall || method == protocol.MethodToolsCall || r.Header.Get("Authorization") != "" {
		if !p.admit(w, r, k, tool) {
			p.mu.Lock()
			p.counts.Challenges++
			p.mu.Unlock()
			return
		}
	}
	p.mu.Lock()
	p.counts.Calls++
	p.mu.Unlock()
	if k.Server.Legacy {
		p.mcpServer.legacy.ServeHTTP(w, r)
		return
	}
	p.mcpServer.modern.ServeHTTP(w, r)
}

// calledTool returns the method of a message, and the name of the tool if the method is tools/call.
func calledTool(body []byte) (method, tool string) {
	m, err := protocol.ParseMessage(body)
	if err != nil || m.Method != protocol.MethodToolsCall {
		return m.Method, ""
	}
	return m.Method, rawjson.GetString(m.Params, "name")
}

// admit reports whether the token of a request is valid and has the scopes that the tool requires. If not, admit sends
// the challenge.
func (p *Provider) admit(w http.ResponseWriter, r *http.Request, k Knobs, tool string) bool {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if text == "" {
		p.challenge(w, k, "")
		return false
	}
	p.mu.Lock()
	known := p.access[text]
	good := known != nil && known.live(k.clock()) && (p.serves(known.audience) || k.Server.AnyAudience)
	p.mu.Unlock()
	switch {
	case k.Server.AnyToken && strings.EqualFold(scheme, "Bearer"):
		return true
	case !strings.EqualFold(scheme, "Bearer") || !good:
		p.challenge(w, k, "invalid_token")
		return false
	}
	needed := []string{k.serverScope()}
	if tool == "secret_tool" {
		needed = append(needed, k.secretScope())
	}
	lacks := slices.ContainsFunc(needed, func(s string) bool { return !slices.Contains(known.scope, s) })
	if lacks || tool == "secret_tool" && k.Server.NeverEnough {
		w.Header().Set("WWW-Authenticate", p.standardChallenge(k, "insufficient_scope", joinScopes(needed)))
		writeJSON(w, http.StatusForbidden, map[string]any{"error": "insufficient_scope", "scope": joinScopes(needed)})
		return false
	}
	r.Header.Set(headerSubject, known.family.subject)
	r.Header.Set(headerClient, known.family.client)
	r.Header.Set(headerScope, joinScopes(known.scope))
	return true
}

// Calls returns the messages with the given method that the MCP server received, or all messages if method is "".
func (p *Provider) Calls(method string) []json.RawMessage {
	var all []json.RawMessage
	for _, r := range p.Requests(MCP) {
		if got, _ := calledTool(r.Body); len(r.Body) > 0 && (method == "" || got == method) {
			all = append(all, r.Body)
		}
	}
	return all
}
