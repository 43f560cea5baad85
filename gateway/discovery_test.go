//go:build !nomcp

package gateway_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	protocol "github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const searchOn = "[mcp.tool_discovery]\nmode = \"search\"\nalways_include = [\"up__echo\"]\n"

const codeOn = "[mcp.tool_discovery]\nmode = \"code\"\n"

// byCallTool makes the params of a tool's call those of call_tool.
func byCallTool(params string) string {
	raw := json.RawMessage(params)
	inner := rawjson.Apply(nil, rawjson.Put(rawjson.Get(raw, "name"), "name"),
		rawjson.Put(rawjson.Get(raw, "arguments"), "arguments"))
	return string(rawjson.Apply(raw, rawjson.Put(rawjson.Quote("call_tool"), "name"), rawjson.Put(inner, "arguments")))
}

// toolsIn returns the names of the tools in a member of a result.
func toolsIn(result json.RawMessage, path ...string) (names []string) {
	for tool := range rawjson.Elements(rawjson.Get(result, path...)) {
		names = append(names, rawjson.GetString(tool, "name"))
	}
	return names
}

// TestAClientThatNeverListsAgainFindsAndCalls has clients of both generations at both doors, before servers of both,
// find a tool and call it: with call_tool, and by its own name. What the server asks and says meanwhile, and what it
// answers, is the same.
func TestAClientThatNeverListsAgainFindsAndCalls(t *testing.T) {
	for _, c := range cells {
		r := newRig(t, plan{server: c.server, upstream: "stdio", settings: searchOn})
		for _, door := range []string{"HTTP", "stdio"} {
			t.Run(c.String()+" "+door, func(t *testing.T) {
				client := r.client(t, c.client, door, allCaps)
				list := client.do(protocol.MethodToolsList, `{}`)
				if diff := cmp.Diff([]string{"up__echo", "find_tools", "call_tool"},
					toolsIn(list.Result, "tools")); diff != "" {
					t.Fatal(diff)
				}
				found := client.do(protocol.MethodToolsCall,
					`{"name":"find_tools","arguments":{"query":"ask the person for their name"}}`)
				if names := toolsIn(found.Result, "structuredContent", "tools"); !slices.Contains(names, "up__ask") {
					t.Fatalf("found %v: %s", names, found.Result)
				}
				for _, params := range []string{toolParams("ask", `{"rounds":[["form"]]}`), toolParams("fail", `{}`),
					toolParams("broken", `{}`)} {
					direct, through := client.call(protocol.MethodToolsCall, params),
						client.call(protocol.MethodToolsCall, byCallTool(params))
					if diff := cmp.Diff(string(direct.Result)+string(direct.Error), string(through.Result)+
						string(through.Error)); diff != "" {
						t.Errorf("%s (-by its name +by call_tool):\n%s", params, diff)
					}
				}
				client.call(protocol.MethodToolsCall,
					byCallTool(`{"name":"up__progress","arguments":{"steps":2},"_meta":{"progressToken":"p"}}`))
				for _, note := range client.await(protocol.NoteProgress, 2) {
					if token := rawjson.GetString(note.Params, "progressToken"); token != "p" {
						t.Errorf("progress of %q", token)
					}
				}
				if client.era == drawbridge.Legacy {
					if text := rawjson.GetString(client.told, "instructions"); !strings.HasPrefix(text,
						"Most tools are not in the list: find_tools ") {
						t.Errorf("the instructions are %q", text)
					}
				}
			})
		}
		r.stop()
	}
}

// TestTheSDKsClientFindsAndCalls does the same with the official client, which looks at what it is given.
func TestTheSDKsClientFindsAndCalls(t *testing.T) {
	g := runGateway(t, `{"servers":{"up":`+string(mcptest.ServerRow(t, "talker", drawbridge.Legacy.String(),
		t.TempDir()+"/record"))+`}}`, searchOn)
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: g.url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	found, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "find_tools",
		Arguments: map[string]any{"query": "echo a text"}})
	if err != nil || found.IsError {
		t.Fatal(err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "call_tool", Arguments: map[string]any{"name": "up__echo", "arguments": map[string]any{"text": "hello"}},
	})
	if err != nil || len(result.Content) != 1 || result.Content[0].(*mcp.TextContent).Text != "hello" {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestClientsThatAskForAllToolsGetThem has clients of both generations ask with "drawbridge/direct" in the modes with
// short lists: the list is byte for byte that of the mode direct, page by page, and its tools can be called. A client
// that the setting "direct" names gets it without asking.
func TestClientsThatAskForAllToolsGetThem(t *testing.T) {
	const all = `{"_meta":{"drawbridge/direct":true}}`
	const named = `{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"0"}}}`
	member := func(m protocol.Message) string { return string(rawjson.Get(m.Result, "tools")) }
	for _, c := range cells {
		// run_python is listed in the mode direct too where clients may run scripts.
		direct := newRig(t, plan{server: c.server, upstream: "stdio", settings: "sandbox.clients = true"})
		want := member(direct.client(t, c.client, "HTTP", allCaps).do(protocol.MethodToolsList, `{}`))
		direct.stop()
		for mode, short := range map[string][]string{
			"search": {"find_tools", "call_tool"},
			"code":   {"search_tools", "describe_tools", "run_python"},
		} {
			settings := "sandbox.clients = true\nmcp.tool_discovery.mode = '" + mode + "'\n"
			r := newRig(t, plan{server: c.server, upstream: "stdio", settings: settings})
			exempt := newRig(t, plan{server: c.server, upstream: "stdio",
				settings: settings + "mcp.tool_discovery.direct = ['Raw']"})
			for _, door := range []string{"HTTP", "stdio"} {
				t.Run(c.String()+" "+mode+" "+door, func(t *testing.T) {
					client := r.client(t, c.client, door, allCaps)
					if diff := cmp.Diff(want, member(client.do(protocol.MethodToolsList, all))); diff != "" {
						t.Errorf("asked for all tools (-want +got):\n%s", diff)
					}
					for _, params := range []string{`{}`, `{"_meta":{"drawbridge/direct":false}}`, `{"_meta":{"drawbridge/direct":"true"}}`} {
						list := toolsIn(client.do(protocol.MethodToolsList, params).Result, "tools")
						if diff := cmp.Diff(short, list[max(0, len(list)-len(short)):]); diff != "" || len(list) > len(short)+1 {
							t.Errorf("%s: the list is %v", params, list)
						}
					}
					answer := client.call(protocol.MethodToolsCall, toolParams("echo", `{"text":"hello"}`))
					if text := string(answer.Result); !strings.Contains(text, "hello") {
						t.Errorf("a listed tool answers %s%s", text, answer.Error)
					}
					told := exempt.client(t, c.client, door, allCaps)
					if diff := cmp.Diff(want, member(told.do(protocol.MethodToolsList, named))); diff != "" {
						t.Errorf("the client is named (-want +got):\n%s", diff)
					}
					if text := rawjson.GetString(told.told, "instructions"); strings.Contains(text, "Most tools are not") {
						t.Errorf("its instructions are %q", text)
					}
				})
			}
			r.stop()
			exempt.stop()
		}
	}
}
