package mcptest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A talkerTool is one tool of a talker. run returns the members of its result.
type talkerTool struct {
	schema string
	run    func(c *talkerTurn, arguments json.RawMessage) (string, error)
}

const regionSchema = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`

// talkerTools contains the tools by name.
var talkerTools = map[string]talkerTool{
	"echo":     {run: talkEcho, schema: `{"type":"object","properties":{"text":{"type":"string"}}}`},
	"fail":     {run: talkFail},
	"broken":   {run: talkBroken},
	"ask":      {run: talkAsk},
	"again":    {run: talkAgain},
	"retract":  {run: talkRetract},
	"log":      {run: talkLog},
	"progress": {run: talkProgress},
	"wait":     {run: talkWait},
	"hold":     {run: talkHold},
	"meta":     {run: talkMeta},
	"caps":     {run: talkCaps},
	"region":   {run: talkRegion, schema: regionSchema},
	"change":   {run: talkChange},
	"touch":    {run: talkTouch},
	"exit":     {run: talkExit},
}

func sortedNames(tools map[string]talkerTool) []string { return slices.Sorted(maps.Keys(tools)) }

func sayText(text string) string {
	return `"content":[{"type":"text","text":` + string(rawjson.Quote(text)) + `}]`
}

// structured returns the members of a result with structured content only.
func structured(object string) string { return `"content":[],"structuredContent":` + object }

func talkEcho(_ *talkerTurn, arguments json.RawMessage) (string, error) {
	return sayText(rawjson.GetString(arguments, "text")), nil
}

func talkFail(*talkerTurn, json.RawMessage) (string, error) {
	return sayText("this tool always fails") + `,"isError":true`, nil
}

// BrokenError is the error object with which the talker's tool broken answers.
const BrokenError = `{"code":-32050,"message":"<broken>","data":{"n":9007199254740993}}`

func talkBroken(*talkerTurn, json.RawMessage) (string, error) { return "", refusal(BrokenError) }

func talkAsk(c *talkerTurn, arguments json.RawMessage) (string, error) {
	answers, err := c.rounds(rawjson.Get(arguments, "rounds"))
	if err != nil {
		return "", err
	}
	c.t.record.event("has its answers", 0, "ask")
	if when := rawjson.GetString(arguments, "when"); when != "" {
		err = awaitFile(c.ctx, when)
	}
	return structured(`{"answers":` + string(answers) + `}`), err
}

// rounds asks the questions of one round after the other, and returns all answers as a JSON array of arrays.
func (c *talkerTurn) rounds(rounds json.RawMessage) (json.RawMessage, error) {
	var kinds [][]string
	if err := json.Unmarshal(rounds, &kinds); err != nil {
		return nil, refuseTurn(mcp.CodeInvalidParams, "rounds: %v", err)
	}
	token := rawjson.Get(c.params, "_meta", mcp.MetaProgressToken)
	all := []string{}
	for i, round := range kinds {
		answers, err := c.asker.ask(c, round)
		if err != nil {
			return nil, err
		}
		all = append(all, jsonArray(answers))
		if token != nil && c.asker.fresh(i) {
			c.say(mcp.Message{Method: mcp.NoteProgress,
				Params: json.RawMessage(fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, token, i+1))})
		}
	}
	return json.RawMessage("[" + strings.Join(all, ",") + "]"), nil
}

// jsonArray returns values as a JSON array.
func jsonArray(values []json.RawMessage) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return "[" + strings.Join(texts, ",") + "]"
}

func talkAgain(c *talkerTurn, arguments json.RawMessage) (string, error) {
	if !c.t.modern {
		return "", refuseTurn(mcp.CodeMethodNotFound, "this generation has no requestState")
	}
	round, times := 0, 1
	_, _ = fmt.Sscanf(rawjson.GetString(c.params, "requestState"), "round %d", &round)
	_ = json.Unmarshal(rawjson.Get(arguments, "times"), &times) // once by default
	if round < times {
		return "", inputRequiredResult(fmt.Sprintf(`{"resultType":"input_required","requestState":"round %d",%s}`,
			round+1, modernInfo))
	}
	return sayText(fmt.Sprintf("came back %d times", round)), nil
}

func talkRetract(c *talkerTurn, arguments json.RawMessage) (string, error) {
	s, ok := c.asker.(*talkSession)
	if !ok {
		return "", refuseTurn(mcp.CodeMethodNotFound, "this generation has no words to take a question back")
	}
	method, params := c.question("form")
	id, _ := s.send(c, method, params)
	defer s.forget(id)
	if err := awaitFile(c.ctx, rawjson.GetString(arguments, "when")); err != nil {
		return "", err
	}
	c.say(mcp.Message{Method: mcp.NoteCancelled, Params: json.RawMessage(`{"requestId":` + id +
		`,"reason":"never mind"}`)})
	return sayText("retracted"), nil
}

// talkerLevels are the log levels, the least severe first.
var talkerLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func talkLog(c *talkerTurn, arguments json.RawMessage) (string, error) {
	said := 0
	for line := range rawjson.Elements(rawjson.Get(arguments, "lines")) {
		if c.level == "" && c.t.modern || slices.Index(talkerLevels, rawjson.GetString(line, "level")) < slices.Index(
			talkerLevels, c.level) {
			continue
		}
		said++
		c.say(mcp.Message{Method: mcp.NoteMessage, Params: line})
	}
	return structured(fmt.Sprintf(`{"said":%d}`, said)), nil
}

func talkProgress(c *talkerTurn, arguments json.RawMessage) (string, error) {
	token, steps := rawjson.Get(c.params, "_meta", mcp.MetaProgressToken), 1
	_ = json.Unmarshal(rawjson.Get(arguments, "steps"), &steps) // one by default
	if token == nil {
		return structured(`{"token":null}`), nil
	}
	for i := range steps {
		params := fmt.Sprintf(`{"progressToken":%s,"progress":%d,"total":%d,"message":"step"}`, token, i+1, steps)
		c.say(mcp.Message{Method: mcp.NoteProgress, Params: json.RawMessage(params)})
	}
	return structured(`{"token":` + string(token) + `}`), nil
}

func talkWait(c *talkerTurn, _ json.RawMessage) (string, error) {
	<-c.ctx.Done()
	return "", errSilent
}

func talkHold(c *talkerTurn, arguments json.RawMessage) (string, error) {
	return sayText("held"), awaitFile(c.ctx, rawjson.GetString(arguments, "when"))
}

func talkMeta(c *talkerTurn, _ json.RawMessage) (string, error) {
	meta := mcp.MetaOf(c.params)
	if meta == nil {
		meta = json.RawMessage("null")
	}
	return structured(`{"meta":` + string(meta) + `}`), nil
}

func talkCaps(c *talkerTurn, _ json.RawMessage) (string, error) {
	return structured(`{"capabilities":` + string(c.asker.declared()) + `}`), nil
}

func talkRegion(c *talkerTurn, arguments json.RawMessage) (string, error) {
	header := json.RawMessage("null")
	if c.header != nil && c.t.modern {
		get := func(name string) (string, bool) {
			values := c.header.Values(name)
			return strings.Join(values, "|"), len(values) > 0
		}
		marks, _ := mcp.ParseHeaderParams(json.RawMessage(regionSchema))
		if err := mcp.CheckParamHeaders(marks, arguments, get); err != nil {
			return "", refuseTurn(mcp.CodeHeaderMismatch, "%v", err)
		}
		if value, ok := get(mcp.HeaderParamPrefix + "Region"); ok {
			header = rawjson.Quote(value)
		}
	}
	return structured(`{"arguments":` + string(arguments) + `,"header":` + string(header) + `}`), nil
}

func talkChange(c *talkerTurn, _ json.RawMessage) (string, error) {
	c.t.mu.Lock()
	c.t.extra = !c.t.extra
	c.t.mu.Unlock()
	for range 2 {
		c.t.tell("toolsListChanged", mcp.NoteToolsChanged, "")
		c.t.tell("promptsListChanged", mcp.NotePromptsChanged, "")
		c.t.tell("resourcesListChanged", mcp.NoteResourcesChanged, "")
	}
	return sayText("changed"), nil
}

func talkTouch(c *talkerTurn, arguments json.RawMessage) (string, error) {
	uri := rawjson.GetString(arguments, "uri")
	c.t.tell("", mcp.NoteResourceUpdated, uri)
	return sayText("touched " + uri), nil
}

func talkExit(c *talkerTurn, _ json.RawMessage) (string, error) {
	c.t.quit()
	return sayText("good bye"), nil
}

// question returns the method and the params of the request that asks a question of the given kind. For a form, the
// argument "about" of the call replaces the message.
func (c *talkerTurn) question(kind string) (method string, params json.RawMessage) {
	method, params = questionOf(kind, c.t.modern)
	if about := rawjson.GetString(c.params, "arguments", "about"); about != "" && kind == "form" {
		params = rawjson.Apply(params, rawjson.Put(rawjson.Quote(about), "message"))
	}
	return method, params
}

// questionOf returns the method and the params of the request that asks a question of the given kind.
func questionOf(kind string, modern bool) (method string, params json.RawMessage) {
	switch kind {
	case "form":
		return mcp.MethodElicitation, json.RawMessage(`{"mode":"form","message":"Who are you?","requestedSchema":` +
			`{"type":"object","properties":{"name":{"type":"string","title":"<Name>"},"n":{"type":"integer"}},"required":["name"]}}`)
	case "url":
		id := `,"elicitationId":"e-1"`
		if modern {
			id = "" // 2026-07-28 has no elicitationId
		}
		return mcp.MethodElicitation,
			json.RawMessage(`{"mode":"url","message":"Sign in","url":"https://example.com/in?a=1&b=2"` + id + `}`)
	case "tools":
		return mcp.MethodSampling,
			json.RawMessage(
				`{"messages":[{"role":"user","content":{"type":"text","text":"Use a tool."}}],"maxTokens":20,` +
					`"tools":[{"name":"t","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"required"}}`)
	case "sampling":
		return mcp.MethodSampling,
			json.RawMessage(
				`{"messages":[{"role":"user","content":{"type":"text","text":"Think."}}],"maxTokens":10,"metadata":{"n":9007199254740993}}`)
	}
	return mcp.MethodRootsList, nil
}

// capabilityOf returns the capability that a client must declare for a kind of question, as a path in its capabilities.
func capabilityOf(kind string) []string {
	switch kind {
	case "form":
		return []string{"elicitation"}
	case "url":
		return []string{"elicitation", "url"}
	case "tools":
		return []string{"sampling", "tools"}
	}
	return []string{kind}
}
