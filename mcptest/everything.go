package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// honestServers returns the servers that are built with the SDK.
func honestServers() []namedServer {
	return []namedServer{
		{"everything", "", "the SDK's server with a little of everything, in both generations", func(serverArgs) int {
			return runSDK(EverythingServer(nil))
		}},
		{"everything-legacy", "", "the same, stateful generation only", func(serverArgs) int {
			return runSDK(EverythingServer(legacyOnly()))
		}},
		{"asking", "", "a server of both generations, whose tool ask sends its question as a request of the stateful one",
			func(serverArgs) int { return runSDK(askingServer()) }},
		{"everything-http", "KIND", "the same on HTTP (legacy, modern or sse); the first line on stdout is its URL",
			everythingHTTP},
		{"notes", "FILE", "a server whose tool note {text} appends a line to the file, and returns {lines}", notes},
	}
}

// notes runs the server "notes".
func notes(args serverArgs) int {
	file := args.text(0, "notes.txt")
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	type input struct {
		Text string `json:"text"`
	}
	type output struct {
		Lines int `json:"lines"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "note", Description: "Appends a line to the file."},
		func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, output, error) {
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, output{}, err
			}
			_, err = fmt.Fprintln(f, in.Text)
			if err = errors.Join(err, f.Close()); err != nil {
				return nil, output{}, err
			}
			text, err := os.ReadFile(file)
			return nil, output{Lines: strings.Count(string(text), "\n")}, err
		})
	return runSDK(server)
}

// askingServer returns a server with the tools echo {text} and ask {}. The second sends an elicitation to its client,
// which the SDK permits only in the stateful generation.
func askingServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, nil)
	addTool(s, "echo", "Returns the text.", func(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (
		*mcp.CallToolResult, error) {
		return textResult("%s", in.Text), nil
	})
	addTool(s, "ask", "Asks the user for a name.", func(ctx context.Context, req *mcp.CallToolRequest, _ noInput) (
		*mcp.CallToolResult, error) {
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Who are you?",
			RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)})
		if err != nil {
			return nil, fmt.Errorf("ask the user: %w", err)
		}
		return textResult("hello, %v", answer.Content["name"]), nil
	})
	return s
}

func legacyOnly() []string {
	var versions []string
	for _, v := range mcp.SupportedProtocolVersions() {
		if v < "2026" {
			versions = append(versions, v)
		}
	}
	return versions
}

func runSDK(s *mcp.Server) int {
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "mcptest:", err)
		return 1
	}
	return 0
}

// EverythingServer returns a server with a few features of every kind, built with the SDK. versions are the protocol
// versions that it speaks; nil means all. Its tools:
//
//	echo {text}               returns the text
//	add {a, b}                returns the sum, as text and as structured content {sum}
//	slow {ms, mark}           waits that long; if the call is cancelled, it writes "cancelled" to the file mark
//	progress {steps}          notifies progress, step by step
//	log {level, text}         sends a log message
//	ask-elicitation {message} asks the user for a name and greets the user
//	ask-sampling {prompt}     asks the client's model
//	ask-roots {}              lists the client's roots
//	whoami {}                 returns the client's data in the request: protocol, _meta, name, capabilities
//	region {region}           has an argument that the header Mcp-Param-Region repeats
//	fail {}                   reports an error as a result
//	crash {}                  ends the process with code 3
//	toggle {}                 adds or removes the tool "extra", with the notification list_changed
//	touch {uri}               notifies that the resource was updated
//
// Its resources are test://greeting, test://picture (a blob), test://touched and the template test://items/{id}. It
// refuses subscriptions to URIs that begin with test://private. Its prompts are hello and greet {name}; the name can be
// completed to ada, alan and grace.
func EverythingServer(versions []string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "everything", Title: "Everything", Version: "1.0.0"},
		&mcp.ServerOptions{
			Instructions:              "Call echo to hear yourself.",
			CompletionHandler:         completePrompt,
			SubscribeHandler:          subscribable,
			UnsubscribeHandler:        func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
			SupportedProtocolVersions: versions,
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
				c.TTLMs, c.CacheScope = 60_000, "private"
			},
		})
	addPlainTools(s)
	addTalkingTools(s)
	addChangingTools(s)
	addResources(s)
	addPrompts(s)
	return s
}

func subscribable(_ context.Context, req *mcp.SubscribeRequest) error {
	if strings.HasPrefix(req.Params.URI, "test://private") {
		return errors.New("it is private")
	}
	return nil
}

func textResult(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

// addTool adds a tool whose result consists of content blocks.
func addTool[In any](s *mcp.Server, name, description string, run func(context.Context, *mcp.CallToolRequest,
	In) (*mcp.CallToolResult, error)) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: description},
		func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			result, err := run(ctx, req, in)
			return result, nil, err
		})
}

type noInput struct{}

type echoInput struct {
	Text string `json:"text" jsonschema:"what to say"`
}

type sumOutput struct {
	Sum float64 `json:"sum"`
}

type addInput struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

type slowInput struct {
	MS   int    `json:"ms" jsonschema:"how long, in milliseconds"`
	Mark string `json:"mark,omitempty" jsonschema:"a file to write to when cancelled"`
}

func addPlainTools(s *mcp.Server) {
	addTool(s, "echo", "Says the text again.", func(_ context.Context, _ *mcp.CallToolRequest,
		in echoInput) (*mcp.CallToolResult, error) {
		return textResult("%s", in.Text), nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "add", Title: "Add", Description: "Adds two numbers.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in addInput) (*mcp.CallToolResult, sumOutput, error) {
			return textResult("%g", in.A+in.B), sumOutput{in.A + in.B}, nil
		})
	addTool(s, "slow", "Takes its time.", func(ctx context.Context, _ *mcp.CallToolRequest,
		in slowInput) (*mcp.CallToolResult, error) {
		if err := waitFor(ctx, in.MS); err != nil {
			if in.Mark != "" {
				err = errors.Join(err, os.WriteFile(in.Mark, []byte("cancelled"), 0o600))
			}
			return nil, err
		}
		return textResult("waited %d ms", in.MS), nil
	})
	addTool(s, "fail", "Reports an error.", func(context.Context, *mcp.CallToolRequest,
		noInput) (*mcp.CallToolResult, error) {
		return nil, errors.New("this tool always fails")
	})
	addTool(s, "crash", "Ends the process.", func(context.Context, *mcp.CallToolRequest,
		noInput) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "everything: asked to crash")
		os.Exit(3)
		return nil, nil
	})
	s.AddTool(&mcp.Tool{
		Name: "region", Description: "Has its argument mirrored in a header.",
		InputSchema: json.RawMessage(
			`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`),
	}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return textResult("%s", req.Params.Arguments), nil
	})
	addTool(s, "whoami", "What the request said of the client.", func(_ context.Context, req *mcp.CallToolRequest,
		_ noInput) (*mcp.CallToolResult, error) {
		said, err := json.Marshal(map[string]any{"meta": req.Params.Meta, "session": req.Session.InitializeParams()})
		return textResult("%s", said), err
	})
}

func addChangingTools(s *mcp.Server) {
	extra := func() {
		addTool(s, "extra", "Comes and goes.", func(context.Context, *mcp.CallToolRequest,
			noInput) (*mcp.CallToolResult, error) {
			return textResult("extra"), nil
		})
	}
	var there onOff
	addTool(s, "toggle", "Adds the tool extra, or takes it away.", func(context.Context, *mcp.CallToolRequest,
		noInput) (*mcp.CallToolResult, error) {
		if there.flip() {
			extra()
			return textResult("added extra"), nil
		}
		s.RemoveTools("extra")
		return textResult("removed extra"), nil
	})
	type touched struct {
		URI string `json:"uri"`
	}
	addTool(s, "touch", "Says that a resource was updated.", func(ctx context.Context, _ *mcp.CallToolRequest,
		in touched) (*mcp.CallToolResult, error) {
		err := s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: in.URI})
		return textResult("touched %s", in.URI), err
	})
}

func addResources(s *mcp.Server) {
	fixed := func(uri, name, mime string, contents mcp.ResourceContents) {
		contents.URI, contents.MIMEType = uri, mime
		s.AddResource(&mcp.Resource{URI: uri, Name: name, MIMEType: mime},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&contents}}, nil
			})
	}
	fixed("test://greeting", "greeting", "text/plain", mcp.ResourceContents{Text: "hello"})
	fixed("test://picture", "picture", "image/png", mcp.ResourceContents{Blob: []byte("\x89PNG")})
	fixed("test://touched", "touched", "text/plain", mcp.ResourceContents{Text: "watch me"})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://items/{id}", Name: "items",
		MIMEType: "text/plain"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			uri := req.Params.URI
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
				{URI: uri, MIMEType: "text/plain", Text: "item " + strings.TrimPrefix(uri, "test://items/")},
			}}, nil
		})
}

func addPrompts(s *mcp.Server) {
	say := func(format string, args ...any) *mcp.GetPromptResult {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
			{Role: "user", Content: &mcp.TextContent{Text: fmt.Sprintf(format, args...)}},
		}}
	}
	s.AddPrompt(&mcp.Prompt{Name: "hello", Description: "Says hello."},
		func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return say("Say hello."), nil
		})
	s.AddPrompt(&mcp.Prompt{
		Name: "greet", Description: "Greets somebody.",
		Arguments: []*mcp.PromptArgument{{Name: "name", Description: "who", Required: true}},
	}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return say("Greet %s.", req.Params.Arguments["name"]), nil
	})
}

func completePrompt(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	values := []string{}
	for _, name := range []string{"ada", "alan", "grace"} {
		if strings.HasPrefix(name, req.Params.Argument.Value) {
			values = append(values, name)
		}
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
}
