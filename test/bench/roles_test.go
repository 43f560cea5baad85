//go:build bench

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// upstream is a server made with the official SDK: on standard input and output, or with "http" over HTTP. It has the
// tools echo, blob, ask, hang and hung, and with "tools=N" so many more; with "stateful" it speaks no other generation.
func upstream(args []string) error {
	var options mcp.ServerOptions
	if slices.Contains(args, "stateful") {
		options.SupportedProtocolVersions = stateful()
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "upstream", Version: "1"}, &options)
	server.AddTool(&mcp.Tool{Name: "ask", Description: "Asks for a name",
		InputSchema: json.RawMessage(`{"type":"object"}`)}, ask)
	server.AddTool(&mcp.Tool{
		Name: "echo", Description: "Answers with its text",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
	}, echo)
	server.AddTool(&mcp.Tool{
		Name: "blob", Description: "Answers with so many bytes of text",
		InputSchema: json.RawMessage(
			`{"type":"object","properties":{"bytes":{"type":"integer"}},"required":["bytes"]}`),
	}, blob)
	var h hangman
	for name, answer := range map[string]mcp.ToolHandler{"hang": h.hang, "hung": h.hung} {
		server.AddTool(&mcp.Tool{Name: name, Description: "Never answers, or says how often it did not",
			InputSchema: json.RawMessage(`{"type":"object"}`)}, answer)
	}
	door := "stdio"
	for _, arg := range args {
		number, more := strings.CutPrefix(arg, "tools=")
		if !more {
			door = arg
			continue
		}
		count, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		addTools(server, count)
	}
	if door == "http" {
		return serveHTTP(sdkHandler(server))
	}
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

func echo(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var arguments struct{ Text string }
	if err := json.Unmarshal(req.Params.Arguments, &arguments); err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: arguments.Text}}}, nil
}

func blob(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var arguments struct{ Bytes int }
	if err := json.Unmarshal(req.Params.Arguments, &arguments); err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", arguments.Bytes)}}},
		nil
}

// addTools adds tools of the size that people write: 250 to 350 bytes each.
func addTools(server *mcp.Server, count int) {
	for n := range count {
		server.AddTool(&mcp.Tool{
			Name: fmt.Sprintf("tool_%04d", n),
			Description: fmt.Sprintf(
				"Looks number %d up in the register and answers with what is known of it, newest first", n),
			InputSchema: json.RawMessage(
				`{"type":"object","properties":{"id":{"type":"string","description":"the entry's id"},"limit":{"type":"integer","minimum":1}},"required":["id"]}`),
		}, echo)
	}
}

// sdkHandler serves as the SDK is fastest: stateless, and with JSON instead of event streams.
func sdkHandler(server *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
}

// serveHTTP listens on a free port of loopback and prints the URL first. It ends when standard input does, which is
// when whoever started the process is gone.
func serveHTTP(handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		listener.Close()
	}()
	if err := http.Serve(listener, handler); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// reverse is the byte-level control: Go's own reverse proxy in front of target.
func reverse(target string) error {
	to, err := url.Parse(target)
	if err != nil {
		return err
	}
	to.Path = ""
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 128
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
	}
	return serveHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Otherwise the body of the request ends when the answer begins, and a quick answer breaks off.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
}

// naive is the proxy that the SDK suggests: its client on the upstream command, its server in front, values decoded and
// encoded in between. It passes tool calls on and does nothing else.
func naive(command []string) error {
	ctx := context.Background()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Stderr = append(os.Environ(), roleVariable+"=upstream"), os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "naive", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	server := mcp.NewServer(&mcp.Implementation{Name: "naive", Version: "1"}, nil)
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		server.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return session.CallTool(ctx, &mcp.CallToolParams{Name: req.Params.Name, Arguments: req.Params.Arguments})
		})
	}
	return serveHTTP(sdkHandler(server))
}
