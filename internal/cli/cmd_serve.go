package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// tokenEnvVar is the environment variable that may contain the bearer token of the HTTP endpoint.
const tokenEnvVar = "DRAWBRIDGE_TOKEN"

func (a *app) serveCommand() *cobra.Command {
	var addr, tokenFile string
	var origins []string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve all mounted servers as one MCP server",
		Long: `Serve all mounted servers as one MCP server: on standard input and output, or with
--http over HTTP at /mcp. The first line on standard output is then the URL.

Beyond loopback the HTTP endpoint requires authentication: by the bearer token of --token-file
or of the environment variable ` + tokenEnvVar + `; by tokens of single clients, see
drawbridge client; or by access tokens of the issuer in drawbridge.toml.`,
		Example: `  drawbridge serve
  drawbridge serve --http 127.0.0.1:7862
  drawbridge serve --http 0.0.0.0:7862 --token-file ~/.drawbridge-token
  drawbridge serve --mcp ./mcp.json --naming bare`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, err := a.readBearerToken(tokenFile)
			if err != nil {
				return err
			}
			return a.runServe(cmd.Context(), addr, token, origins)
		},
	}
	cmd.Flags().StringVar(&addr, "http", "", "serve over HTTP on `ADDR` (host:port; port 0 takes a free one)")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "`FILE` that holds the bearer token clients must send")
	cmd.Flags().StringArrayVar(&origins, "allow-origin", nil,
		"`ORIGIN` of a web page that may call the HTTP endpoint; may be repeated")
	return cmd
}

// readBearerToken returns the bearer token in a file, or in the environment variable if file is empty. It returns "" if
// neither is set.
func (a *app) readBearerToken(file string) (string, error) {
	if file == "" {
		token, _ := a.Env(tokenEnvVar)
		return strings.TrimSpace(token), nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", usageError{fmt.Errorf(
			"read the token file: %w (write one with: drawbridge client add, or: head -c 32 /dev/urandom | base64 > %s)",
			err, safetext.Exact(file))}
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return "", usageError{fmt.Errorf("the token file %s is empty", file)}
	}
	return token, nil
}

func (a *app) runServe(ctx context.Context, addr, token string, origins []string) error {
	if _, mounted := a.Env(gateway.MountedVariable); mounted {
		return usageError{errors.New(
			"this drawbridge was started as a server by another drawbridge, which would go on without end (take its row out of the configuration)")}
	}
	set, err := a.readConfig(ctx)
	if err != nil {
		return err
	}
	for _, note := range configNotes(set) {
		safetext.Fprintln(a.Err, note)
	}
	if len(set.Servers) == 0 {
		safetext.Fprintln(a.Err, safetext.Shown(noServersText))
	}
	o := a.hubOptions()
	o.Config.Token, o.Config.Origins = token, origins
	o.WhileHub = a.showProgress
	if addr == "" {
		if IsTerminal(a.In) {
			safetext.Fprintln(a.Err, "drawbridge serve speaks MCP on standard input and output: a client starts it "+
				"(drawbridge connect CLIENT). Ctrl-C ends it.")
		}
		return ignoreCanceled(hub.ServeStdio(ctx, o, a.In, a.Out))
	}
	listener, err := listenTCP(ctx, addr)
	if err != nil {
		return err
	}
	ready := func() {
		safetext.Fprintf(a.Out, "http://%s/mcp\n", publishedAddress(addr, listener.Addr()))
		if IsTerminal(a.Err) {
			safetext.Fprintln(a.Err, "Give clients this URL; drawbridge client add NAME makes a token for one. Ctrl-C ends it.")
		}
	}
	return ignoreCanceled(hub.ServeHTTP(ctx, o, listener, ready))
}

// publishedAddress returns the address of a listener for people: the host in named, which is the value of --http, and
// the port of actual. If named has no host, it returns actual.
func publishedAddress(named string, actual net.Addr) string {
	host, _, err := net.SplitHostPort(named)
	_, port, badPort := net.SplitHostPort(actual.String())
	if err != nil || badPort != nil || host == "" {
		return actual.String()
	}
	return net.JoinHostPort(host, port)
}

// hubOptions returns the options that select the hub of this process.
func (a *app) hubOptions() hub.Options {
	c := a.gatewayConfig()
	c.Environ = a.Environ
	return hub.Options{Config: c, Host: a.Host}
}

// noServersText explains how to add the first server.
const noServersText = `no servers are configured yet: drawbridge setup copies those of your other programs and connects them;
drawbridge import only copies them; drawbridge mcp add adds one; or write one to ~/.config/drawbridge/mcp.json:
  {"servers": {"everything": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"]}}}
or name a file with --mcp PATH`

func listenTCP(ctx context.Context, addr string) (*net.TCPListener, error) {
	if _, err := strconv.ParseUint(addr, 10, 16); err == nil {
		return nil, usageError{fmt.Errorf("listen on %s: the address is HOST:PORT (--http 127.0.0.1:%s)", addr, addr)}
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "listen on " + addr, Err: err,
			Next: "another --http ADDR, or port 0 for a free one",
		}
	}
	return listener.(*net.TCPListener), nil
}

// ignoreCanceled returns nil for context.Canceled, and any other error unchanged.
func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
