package command

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// defaultWait is how long a request waits for servers that were never listed, if its params set no time.
const defaultWait = 10 * time.Second

// ToolsParams are the params of MethodTools.
type ToolsParams struct {
	// WaitMillis is how long to wait for servers that were never listed, in milliseconds. 0 means 10 seconds. With a
	// negative number the wait has no limit: it ends when each server has a listing or a fault.
	WaitMillis int64 `json:"wait_ms,omitempty"`
	// Profile is the name of a profile of Drawbridge's own tools, such as "read-only". Only the tools of that profile
	// are listed. If Profile is empty, the result is the list that clients receive, without Drawbridge's own tools.
	Profile string `json:"profile,omitempty"`
}

func (p ToolsParams) wait() time.Duration {
	if p.WaitMillis == 0 {
		return defaultWait
	}
	return time.Duration(p.WaitMillis) * time.Millisecond
}

// ToolParams are the params of MethodTool.
type ToolParams struct {
	Name string `json:"name"`
	// ForCall is set if the command is about to call the tool. An unknown name is then recorded in the audit as a call.
	ForCall bool `json:"for_call,omitempty"`
}

// ServerParams are the params of MethodMount and MethodItems. Lists are MCP list methods, such as prompts/list.
// MethodItems returns the server's items of these lists; MethodMount ignores Lists.
type ServerParams struct {
	Server drawbridge.ServerID `json:"server"`
	Lists  []string            `json:"lists,omitempty"`
}

// A Tool is a tool or another listed item: a prompt, a resource or a resource template.
type Tool struct {
	// Name is the name under which the deck lists the item; empty for an item that cannot be called.
	Name   drawbridge.CardName `json:"name"`
	Server drawbridge.ServerID `json:"server,omitempty"`
	// Tool is the name of the item on its server.
	Tool       string  `json:"tool,omitempty"`
	Summary    string  `json:"summary,omitempty"`
	Definition RawText `json:"definition"`
	// Notes describe for people how the shield changed the definition.
	Notes []string `json:"notes,omitempty"`
	// Learned is the output type that was learned from results; nil if the tool has an output schema, or if none was.
	Learned *deck.LearnedOutput `json:"learned,omitempty"`
}

func newTool(s drawbridge.Spec) Tool {
	return Tool{Name: s.Name, Server: s.Server, Tool: s.Tool, Summary: s.Summary, Definition: RawText(s.Definition)}
}

// Spec returns the tool as a drawbridge.Spec. Only the fields that commands print are set.
func (t Tool) Spec() drawbridge.Spec {
	return drawbridge.Spec{Name: t.Name, Server: t.Server, Tool: t.Tool, Summary: t.Summary,
		Definition: json.RawMessage(t.Definition)}
}

// A RawText is JSON text whose bytes must stay unchanged, such as the definition of a tool. Inside another JSON
// document it is encoded as a JSON string.
type RawText json.RawMessage

// MarshalText returns the bytes of r unchanged.
func (r RawText) MarshalText() ([]byte, error) { return r, nil }

// UnmarshalText sets r to a copy of text.
func (r *RawText) UnmarshalText(text []byte) error {
	*r = append(RawText(nil), text...)
	return nil
}

// A ToolList is the result of MethodTools.
type ToolList struct {
	Tools []Tool `json:"tools"`
	// Servers is the status of each configured server after the wait.
	Servers []drawbridge.ServerStatus `json:"servers"`
}

// Missing returns the servers whose tools are missing from the list. These servers were never listed, and they failed,
// are still connecting, or need a sign-in.
func (l ToolList) Missing() (ids []drawbridge.ServerID) {
	for _, s := range l.Servers {
		switch s.Phase {
		case drawbridge.Faulted, drawbridge.Connecting, drawbridge.NeedsSignIn:
			if s.Listed.IsZero() {
				ids = append(ids, s.Server)
			}
		}
	}
	return ids
}

func (c runner) listTools(ctx context.Context, p ToolsParams) (ToolList, error) {
	if p.Profile != "" {
		return c.listOwnTools(p.Profile)
	}
	c.mountNew(ctx, p.wait())
	if err := ctx.Err(); err != nil {
		return ToolList{}, err
	}
	list, err := c.g.Deck().List(ctx, c.caller, mcp.MethodToolsList)
	if err != nil {
		return ToolList{}, err
	}
	found := ToolList{Tools: []Tool{}, Servers: c.g.Status()}
	for _, item := range list.Items {
		one := Tool{}
		if spec, ok := c.g.Deck().FindCard(c.caller, drawbridge.CardName(rawjson.GetString(item, "name"))); ok {
			if c.g.IsOwnTool(spec) {
				continue
			}
			one = newTool(spec)
			one.Name = drawbridge.CardName(rawjson.GetString(item, "name"))
		}
		one.Definition = RawText(item)
		found.Tools = append(found.Tools, one)
	}
	return found, nil
}

// listOwnTools lists Drawbridge's own tools of a profile. It starts no server.
func (c runner) listOwnTools(profile string) (ToolList, error) {
	specs, err := c.g.OwnTools(c.caller, profile)
	if err != nil {
		return ToolList{}, err
	}
	found := ToolList{Tools: []Tool{}}
	for _, spec := range specs {
		found.Tools = append(found.Tools, newTool(spec))
	}
	return found, nil
}

// mountNew mounts the servers that were never listed and waits for them, at most for the time limit. A negative limit
// means no limit.
func (c runner) mountNew(ctx context.Context, limit time.Duration) {
	if limit >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	defer c.wait.watchStarts("")()
	c.g.MountNew(ctx)
}

func (c runner) showTool(ctx context.Context, p ToolParams) (Tool, error) {
	spec, err := c.findTool(ctx, p.Name)
	if err != nil && p.ForCall && isUnknown(err) {
		// The call fails, and the deck records it in the audit.
		_, _ = c.g.Deck().Call(ctx, drawbridge.Call{Caller: c.caller,
			Params: rawjson.Apply(nil, rawjson.Put(rawjson.Quote(p.Name), "name"))})
	}
	if err != nil {
		return Tool{}, err
	}
	shown := newTool(spec)
	shown.Notes = c.g.CardNotes(spec)
	if out, ok := c.g.Deck().LearnedOutput(ctx, c.caller, spec.Name); ok {
		shown.Learned = &out
	}
	return shown, nil
}

// A MountResult is the result of MethodMount: the listing or the fault, and the status of the server after the mount.
type MountResult struct {
	Listing drawbridge.Listing      `json:"listing"`
	Status  drawbridge.ServerStatus `json:"status"`
	Fault   *Fault                  `json:"fault,omitempty"`
	// SignIn is the address where a person continues a sign-in at the server; empty if no sign-in has begun.
	SignIn string `json:"sign_in,omitempty"`
}

// mountServer mounts a server and returns its listing. If the server is connected already, mountServer requests its
// lists again, so that the listing is current.
func (c runner) mountServer(ctx context.Context, p ServerParams) (MountResult, error) {
	_, _, err := c.g.Relist(ctx, p.Server)
	var listing drawbridge.Listing
	if err == nil {
		listing, err = c.mount(ctx, p.Server)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return MountResult{}, err
	}
	found := MountResult{Listing: listing, Status: drawbridge.ServerStatus{Server: p.Server}, Fault: EncodeFault(err)}
	for _, s := range c.g.Status() {
		if s.Server == p.Server {
			found.Status = s
		}
	}
	if signIn, err := c.g.ServerSignIn(p.Server); err == nil {
		if credential, err := signIn.Status(); err == nil {
			found.SignIn = credential.URL
		}
	}
	return found, nil
}

func (c runner) listItems(ctx context.Context, p ServerParams) ([]Tool, error) {
	if _, err := c.mount(ctx, p.Server); err != nil {
		return nil, err
	}
	items := []Tool{}
	for _, method := range p.Lists {
		for _, spec := range c.g.Deck().Items(c.caller, method) {
			if spec.Server == p.Server {
				items = append(items, newTool(spec))
			}
		}
	}
	return items, nil
}

// SearchParams are the params of MethodSearch.
type SearchParams struct {
	ToolsParams
	Query string `json:"query"`
	// Top is the maximum number of tools to return. If Explain is set, each hit has its scores in SearchHit.Scores.
	Top     int  `json:"top"`
	Explain bool `json:"explain,omitempty"`
}

// A SearchResult is the result of MethodSearch. Hits begins with the best tool.
type SearchResult struct {
	Hits []SearchHit `json:"hits"`
	// Matched reports whether any of the tools contains a word of the query.
	Matched bool `json:"matched"`
}

// A SearchHit is a tool that a search found.
type SearchHit struct {
	Tool
	Score  float64 `json:"score"`
	Reason string  `json:"reason,omitempty"`
	// Scores are the scores of the tool by search method and by field; nil unless SearchParams.Explain is set.
	Scores *SearchScores `json:"scores,omitempty"`
}

// SearchScores are the scores of one tool by search method and by field. Each score is relative to the best score that
// any tool has for that method or field, from 0 to 1. Words, Meaning and Far are the scores of the search methods:
// matching words, the built-in encoder, and an external model, which replaces the encoder. Name, Server, Description
// and Parameters are the scores of matching words in that field only.
type SearchScores struct {
	Words       float64 `json:"words"`
	Meaning     float64 `json:"meaning"`
	Far         float64 `json:"far"`
	Name        float64 `json:"name"`
	Server      float64 `json:"server"`
	Description float64 `json:"description"`
	Parameters  float64 `json:"parameters"`
}

func (c runner) search(ctx context.Context, p SearchParams) (SearchResult, error) {
	c.mountNew(ctx, p.wait())
	if err := ctx.Err(); err != nil {
		return SearchResult{}, err
	}
	v := c.g.Deck().SearchView(c.caller)
	hits, matched := v.Find(ctx, p.Query, p.Top)
	found := SearchResult{Hits: []SearchHit{}, Matched: matched}
	for _, h := range hits {
		found.Hits = append(found.Hits, SearchHit{Tool: newTool(h.Spec), Score: h.Score, Reason: h.Reason})
	}
	if p.Explain {
		for i, e := range v.Explain(ctx, p.Query, hits) {
			scores := SearchScores(e)
			found.Hits[i].Scores = &scores
		}
	}
	return found, nil
}
