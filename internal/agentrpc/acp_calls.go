package agentrpc

import (
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A shownCall is a call that the client knows.
type shownCall struct {
	id string
	// changes are the changes of files that the arguments ask for.
	changes []toolContent
}

// callID returns the ID that the client knows for a call; a call that it does not know is told.
func (a *acpSession) callID(path string, call drawbridge.ToolCall) string {
	if shown, ok := a.calls[[2]string{path, call.ID}]; ok {
		return shown.id
	}
	return a.callStarted(path, call)
}

// callStarted tells the client about a call. Models may use an ID again in another message; the client gets another one.
func (a *acpSession) callStarted(path string, call drawbridge.ToolCall) string {
	a.count++
	id := call.ID
	if id == "" || a.used[id] {
		id += "#" + strconv.Itoa(a.count)
	}
	a.used[id] = true
	shown := shownCall{id, changesOf(string(call.Name), call.Arguments, a.dir)}
	a.calls[[2]string{path, call.ID}] = shown
	title := safetext.Exact(string(call.Name))
	if path != "" {
		title = "agent " + path + ": " + title
	}
	u := sessionUpdate{Update: "tool_call", Call: id, Title: title, Kind: kindOf(string(call.Name)), Status: "in_progress",
		Input: inputOf(call.Arguments), Locations: locationsOf(call, a.dir)}
	if len(shown.changes) > 0 {
		u.Content = shown.changes
	}
	a.update(u)
	return id
}

// inputOf returns the arguments of a call; nil without any.
func inputOf(raw json.RawMessage) any {
	if rawjson.Valid(raw) != nil {
		return nil
	}
	return raw
}

// callFinished tells the client the result of a call. details may be nil.
func (a *acpSession) callFinished(path string, call drawbridge.ToolCall, r drawbridge.ToolResult,
	details *agent.CallDetails) {
	key := [2]string{path, call.ID}
	id := a.callID(path, call)
	content := a.calls[key].changes
	delete(a.calls, key)
	u := sessionUpdate{Update: "tool_call_update", Call: id, Status: "completed"}
	if r.IsError {
		u.Status = "failed"
	}
	if r.IsError || len(content) == 0 { // else the changes say what the text says
		content = resultContent(r)
	}
	if len(content) > 0 {
		u.Content = content
	}
	if details != nil {
		u.Output = inputOf(details.Structured)
	}
	a.update(u)
	if path != "" || r.IsError || details == nil {
		return
	}
	if plan := planOf(string(call.Name), details.Structured); plan != nil {
		a.update(sessionUpdate{Update: "plan", Entries: plan})
	}
}

// resultContent returns the text and the images of a result.
func resultContent(r drawbridge.ToolResult) (content []toolContent) {
	if r.Text != "" {
		content = toolText(r.Text)
	}
	for _, image := range r.Images {
		content = append(content, toolContent{Type: "content", Content: imageBlock(image)})
	}
	return content
}

func imageBlock(i drawbridge.Image) *contentBlock {
	return &contentBlock{Type: "image", MIMEType: i.MIMEType, Data: base64.StdEncoding.EncodeToString(i.Data)}
}

// changesOf returns the changes of a file that a call of edit or write asks for. Of a written file, the earlier content
// is not known.
func changesOf(tool string, arguments json.RawMessage, dir string) (changes []toolContent) {
	type change struct {
		Old *string `json:"oldText"`
		New *string `json:"newText"`
	}
	var in struct {
		Path    string  `json:"path"`
		Content *string `json:"content"`
		change
		Edits []change `json:"edits"`
	}
	if json.Unmarshal(arguments, &in) != nil || in.Path == "" {
		return nil
	}
	all := in.Edits
	switch {
	case tool == "write":
		all = []change{{New: in.Content}}
	case tool != "edit":
		return nil
	case len(all) == 0:
		all = []change{in.change}
	}
	for _, c := range all {
		if c.New == nil && c.Old != nil { // the text is removed
			c.New = new(string)
		}
		if c.New != nil {
			changes = append(changes, toolContent{Type: "diff", Path: absolute(in.Path, dir), OldText: c.Old, NewText: c.New})
		}
	}
	return changes
}

// absolute returns a path in a directory.
func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// A planEntry is an item of the checklist of a session.
type planEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// planStates are the states of an item in the protocol. A dropped item is not in the plan.
var planStates = map[string]string{"pending": "pending", "active": "in_progress", "done": "completed"}

// planOf returns the checklist in the result of one of Drawbridge's own tools; nil if there is none.
func planOf(tool string, result json.RawMessage) []planEntry {
	if !slices.Contains([]string{"todo", "todo_set", "todo_read"}, tool) {
		return nil
	}
	var out struct {
		Items []struct{ Text, Status, State, Weight string }
	}
	if json.Unmarshal(result, &out) != nil || out.Items == nil {
		return nil
	}
	entries := []planEntry{}
	for _, i := range out.Items {
		status := planStates[i.Status+i.State] // one of them is empty
		if status == "" {
			continue
		}
		priority := i.Weight
		if priority != "low" && priority != "high" {
			priority = "medium"
		}
		entries = append(entries, planEntry{i.Text, priority, status})
	}
	return entries
}

// toolKinds are the kinds of Drawbridge's own tools. They decide on the sign that an editor shows.
var toolKinds = map[string][]string{
	"read": {"read", "ls", "todo_read"}, "edit": {"edit", "write"}, "search": {"find", "grep", "search_tools"},
	"execute": {"bash", "process", "run_python"}, "fetch": {"webfetch", "websearch"}, "think": {"task", "todo", "todo_set"},
}

// kindOf returns the kind of a tool.
func kindOf(tool string) string {
	for kind, names := range toolKinds {
		if slices.Contains(names, tool) {
			return kind
		}
	}
	return "other"
}

// locationsOf returns the file that a call of one of Drawbridge's own tools names.
func locationsOf(call drawbridge.ToolCall, dir string) []location {
	kind := kindOf(string(call.Name))
	path := rawjson.GetString(call.Arguments, "path")
	if path == "" || kind == "other" || kind == "execute" {
		return nil
	}
	return []location{{absolute(path, dir)}}
}
