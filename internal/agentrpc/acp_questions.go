package agentrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// clientAbilities are the optional features of a client that the questions and notices of a session use.
type clientAbilities struct{ form, url, notices bool }

// readAbilities reads the params of initialize.
func readAbilities(params json.RawMessage) clientAbilities {
	has := func(path ...string) bool {
		raw := rawjson.Get(params, append([]string{"clientCapabilities"}, path...)...)
		return len(raw) > 0 && raw[0] == '{'
	}
	return clientAbilities{form: has("elicitation", "form"), url: has("elicitation", "url"), notices: has("session", "notices")}
}

// The answers to a request for permission.
const (
	allowOnce   = "allow_once"
	allowAlways = "allow_always"
	rejectOnce  = "reject_once"
)

// A permissionOption is an answer that the person can choose.
type permissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// answer asks the person and passes the answer on. What the client cannot ask is answered with no.
func (a *acpSession) answer(ctx context.Context, call string, q agent.Question) {
	able := a.server.abilities()
	reply := agent.Answer{ID: q.ID}
	var err error
	switch {
	case q.Kind == agent.AskApproval || q.Kind == agent.AskScript || q.Kind == agent.AskSampling || q.Kind == agent.AskPlan:
		var choice string
		choice, err = a.askPermission(ctx, call, q)
		always := choice == allowAlways && mayAllowAlways(q)
		reply.Allow, reply.Always = choice == allowOnce || always, always
	case q.Kind == agent.AskForm && able.form, q.Kind == agent.AskURL && able.url:
		reply.Allow, reply.Content, err = a.elicit(ctx, call, q)
	default:
		a.say(declined(q))
	}
	if ctx.Err() != nil {
		return // the call was cancelled
	}
	if err != nil {
		a.say("The client could not ask the person: " + err.Error())
	}
	if err := a.agent.Answer(ctx, reply); err != nil && ctx.Err() == nil {
		a.say("The answer was not accepted: " + err.Error())
	}
}

// declined says that a question was declined.
func declined(q agent.Question) string {
	what := map[agent.QuestionKind]string{agent.AskForm: "for values", agent.AskURL: "to open a page"}[q.Kind]
	text := "The server " + safetext.Exact(q.Server) + " asked " + what + "; this was declined, because this client cannot ask."
	if q.URL != "" {
		text += " The page: " + safetext.Exact(q.URL)
	}
	return text + " \"drawbridge -i\" can answer such questions."
}

// elicit asks the person for the values of a form, or to open a page.
func (a *acpSession) elicit(ctx context.Context, call string, q agent.Question) (yes bool, content json.RawMessage, err error) {
	params := struct {
		Session string          `json:"sessionId"`
		Call    string          `json:"toolCallId"`
		Mode    string          `json:"mode"`
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"requestedSchema,omitempty"`
		ID      string          `json:"elicitationId,omitempty"`
		URL     string          `json:"url,omitempty"`
	}{Session: a.id, Call: call, Mode: "form",
		Message: "The server " + safetext.Exact(q.Server) + " asks: " + safetext.Text(q.Message)}
	if q.Kind == agent.AskURL {
		if u, err := url.Parse(q.URL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return false, nil, fmt.Errorf("the page %s has no address of the web", safetext.Exact(q.URL))
		}
		params.Mode, params.ID, params.URL = "url", q.ID, q.URL
	} else if params.Schema = rawjson.Get(q.Arguments, "requestedSchema"); params.Schema == nil {
		return false, nil, errors.New("the form has no schema")
	}
	raw, err := a.server.request(ctx, "elicitation/create", params)
	if err != nil || rawjson.GetString(raw, "action") != "accept" {
		return false, nil, err
	}
	if q.Kind == agent.AskURL {
		return true, nil, nil
	}
	if content = rawjson.Get(raw, "content"); len(content) == 0 || content[0] != '{' {
		content = json.RawMessage("{}")
	}
	return true, content, nil
}

// mayAllowAlways reports whether a yes can count for the whole session.
func mayAllowAlways(q agent.Question) bool {
	return q.Kind == agent.AskApproval || q.Kind == agent.AskScript
}

// askPermission asks the person, and returns the ID of the chosen option; empty if none was chosen.
func (a *acpSession) askPermission(ctx context.Context, call string, q agent.Question) (string, error) {
	title := safetext.Exact(q.Tool)
	if q.Server != "" {
		title += " of the server " + safetext.Exact(q.Server)
	}
	if q.Kind == agent.AskSampling {
		title = "answer of the model for the server " + safetext.Exact(q.Server)
	}
	kind := ""
	options := []permissionOption{{allowOnce, "Allow once", allowOnce}}
	if mayAllowAlways(q) {
		options = append(options, permissionOption{allowAlways, "Allow in this session", allowAlways})
	}
	options = append(options, permissionOption{rejectOnce, "Refuse", rejectOnce})
	if q.Kind == agent.AskPlan {
		title, kind = "Carry out this plan?", "switch_mode"
		options = []permissionOption{{allowOnce, "Carry it out", allowOnce}, {rejectOnce, "Keep planning", rejectOnce}}
	}
	raw, err := a.server.request(ctx, "session/request_permission", struct {
		Session string             `json:"sessionId"`
		Call    sessionUpdate      `json:"toolCall"`
		Options []permissionOption `json:"options"`
	}{a.id, sessionUpdate{Call: call, Title: title, Kind: kind, Status: "pending", Input: inputOf(q.Arguments),
		Content: append(toolText(questionText(q)), ownChanges(q, a.dir)...)}, options})
	if err != nil {
		return "", err
	}
	if rawjson.GetString(raw, "outcome", "outcome") != "selected" {
		return "", nil
	}
	return rawjson.GetString(raw, "outcome", "optionId"), nil
}

// ownChanges returns the changes of a file that a call of Drawbridge's own tools asks for.
func ownChanges(q agent.Question, dir string) []toolContent {
	if q.Server != "" {
		return nil
	}
	return changesOf(q.Tool, q.Arguments, dir)
}

// questionText returns what the person decides on, as Markdown.
func questionText(q agent.Question) string {
	var b strings.Builder
	for i, line := range flow.ReasonLines(q.Reason) {
		if value, isValue := strings.CutPrefix(line, "  "); isValue {
			line = "- " + value
		} else if i > 0 {
			line = "\n" + line
		}
		b.WriteString(safetext.Text(line) + "\n")
	}
	if q.Reason != "" {
		b.WriteString("\n")
	}
	if q.Message != "" {
		b.WriteString(safetext.Text(q.Message) + "\n\n")
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, q.Arguments, "", "  ") != nil {
		return b.String()
	}
	fence := "```"
	for strings.Contains(pretty.String(), fence) {
		fence += "`"
	}
	return b.String() + fence + "json\n" + string(safetext.JSON(pretty.Bytes())) + "\n" + fence
}
