package llm

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// Two APIs search for tools themselves. The definitions of deferred tools are sent with defer_loading, and the model sees
// them after it has searched. What a search found is part of the conversation, and is sent back as it came:
//
//   - Anthropic: https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool
//   - OpenAI's Responses: https://developers.openai.com/api/docs/guides/tools-tool-search
//
// In a message, the parts of a search are Thinking without text: they are for the model that wrote them only.
const (
	anthropicSearchType = "tool_search_tool_bm25_20251119"
	anthropicSearchName = "tool_search_tool_bm25"
	openAISearchType    = "tool_search"
)

// searchesTools reports whether a model searches for deferred tools itself.
func (p *chatProvider) searchesTools(name string) bool {
	if p.kind != KindAnthropic && p.kind != KindOpenAI {
		return false
	}
	if wish := p.settings.ToolSearch; wish != nil {
		return *wish
	}
	if p.base != p.api.base {
		return false // another server with the same API may not know it
	}
	if p.kind == KindAnthropic {
		return anthropicSearches(name)
	}
	return openAISearches(name)
}

// anthropicSearches reports whether a model of Anthropic searches for tools: Opus and Sonnet since 4.5.
func anthropicSearches(name string) bool {
	if !strings.HasPrefix(name, "claude-") || strings.Contains(name, "haiku") {
		return false
	}
	return !slices.ContainsFunc([]string{"claude-2", "claude-3", "claude-instant", "opus-4-0", "opus-4-1", "opus-4-2", "sonnet-4-0", "sonnet-4-2"},
		func(old string) bool { return strings.Contains(name, old) })
}

var gptVersion = lazyregexp.New(`^gpt-(\d{1,3})(?:\.(\d{1,3}))?`)

// openAISearches reports whether a model of OpenAI searches for tools: those since gpt-5.4.
func openAISearches(name string) bool {
	found := gptVersion().FindStringSubmatch(name)
	if found == nil {
		return false
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2]) // 0 without one
	return major > 5 || major == 5 && minor >= 4
}

// isSearchPart reports whether a part of a message belongs to a search for tools.
func isSearchPart(p drawbridge.MessagePart) bool {
	if p.Thinking == nil {
		return false
	}
	switch rawjson.GetString(p.Thinking.Provider, "type") {
	case "server_tool_use", "tool_search_tool_result", "tool_search_call", "tool_search_output":
		return true
	}
	return false
}

// withoutSearches returns the messages without the parts of searches, for a request that has no search for tools.
func withoutSearches(messages []drawbridge.Message) []drawbridge.Message {
	all := slices.Clone(messages)
	for i, m := range all {
		if slices.ContainsFunc(m.Parts, isSearchPart) {
			all[i].Parts = slices.DeleteFunc(slices.Clone(m.Parts), isSearchPart)
		}
	}
	return all
}

// pairedSearches returns the messages without results of searches whose call is missing, and without calls whose result
// is missing: the provider refuses both. They remain when a part of a conversation was replaced by a summary, or an
// answer was cut off. A call in the last answer stays, because its result may be in the next one.
func pairedSearches(messages []drawbridge.Message) []drawbridge.Message {
	last := -1
	finished := map[string]bool{}
	for i, m := range messages {
		for _, p := range m.Parts {
			if m.Role == drawbridge.AssistantRole {
				last = i
			}
			if id, isResult := searchID(p); isResult {
				finished[id] = true
			}
		}
	}
	all := slices.Clone(messages)
	called := map[string]bool{}
	for i, m := range all {
		all[i].Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p drawbridge.MessagePart) bool {
			id, isResult := searchID(p)
			switch {
			case id == "":
				return false
			case isResult:
				return !called[id]
			}
			called[id] = true
			return !finished[id] && i != last
		})
	}
	return all
}

// searchID returns the ID of the search to which a part belongs, and whether the part is its result. The ID is empty for
// other parts.
func searchID(p drawbridge.MessagePart) (id string, isResult bool) {
	if p.Thinking == nil {
		return "", false
	}
	raw := p.Thinking.Provider
	switch rawjson.GetString(raw, "type") {
	case "server_tool_use":
		return rawjson.GetString(raw, "id"), false
	case "tool_search_tool_result":
		return rawjson.GetString(raw, "tool_use_id"), true
	case "tool_search_call":
		return rawjson.GetString(raw, "call_id"), false
	case "tool_search_output":
		return rawjson.GetString(raw, "call_id"), true
	}
	return "", false
}

// searches reports whether a request has tools that the model must search for.
func (m *ChatModel) searches(r drawbridge.ModelRequest) bool {
	return m.info.DeferredTools && slices.ContainsFunc(r.Tools, func(t drawbridge.ToolDefinition) bool { return t.Deferred })
}

// knownReferences returns the result of a search without the tools that the request does not have any more: the
// provider refuses a reference to such a tool.
func knownReferences(block json.RawMessage, tools []drawbridge.ToolDefinition) json.RawMessage {
	if rawjson.GetString(block, "type") != "tool_search_tool_result" {
		return block
	}
	all := rawjson.Get(block, "content", "tool_references")
	if all == nil {
		return block // an error of the search
	}
	left, some := []json.RawMessage{}, false
	for reference := range rawjson.Elements(all) {
		name := rawjson.GetString(reference, "tool_name")
		if slices.ContainsFunc(tools, func(t drawbridge.ToolDefinition) bool { return wireName(t.Name) == name }) {
			left = append(left, reference)
		} else {
			some = true
		}
	}
	if !some {
		return block
	}
	list, err := json.Marshal(left)
	if err != nil {
		return block // they are valid JSON
	}
	return rawjson.Apply(block, rawjson.Put(list, "content", "tool_references"))
}

// searchItem returns what is sent back of an item of OpenAI's search: without its ID, since nothing is stored.
func searchItem(item json.RawMessage) json.RawMessage {
	out := newObject()
	for m := range rawjson.Members(item) {
		for _, keep := range []string{"type", "execution", "call_id", "status", "arguments", "tools"} {
			if m.HasName(keep) {
				out.add(m.Name, m.Value)
			}
		}
	}
	return out.end()
}
