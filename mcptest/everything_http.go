package mcptest

import (
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// HTTPLegacy returns EverythingServer over Streamable HTTP with sessions: the stateful generation.
func HTTPLegacy() http.Handler {
	server := EverythingServer(legacyOnly())
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
}

// HTTPModern returns EverythingServer over Streamable HTTP without sessions: the stateless generation.
func HTTPModern() http.Handler {
	server := EverythingServer(nil)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
}

// HTTPSSE returns EverythingServer over the HTTP+SSE transport of 2024-11-05. To a POST to the same path, with which
// clients begin Streamable HTTP, it answers with an error.
func HTTPSSE() http.Handler {
	server := EverythingServer(legacyOnly())
	return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil)
}

func everythingHTTP(args serverArgs) int {
	handler := map[string]func() http.Handler{"legacy": HTTPLegacy, "modern": HTTPModern,
		"sse": HTTPSSE}[args.text(0, "modern")]
	if handler == nil {
		fmt.Fprintln(os.Stderr, "mcptest: want legacy, modern or sse")
		return 2
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcptest:", err)
		return 1
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	fmt.Fprintln(os.Stderr, "mcptest:", http.Serve(l, handler()))
	return 1
}
