//go:build peers

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A task is what the suite tells the client of a scenario beside the URL of a server.
type task struct {
	scenario string
	context  struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		PrivateKey   string `json:"private_key_pem"`
		IDPIssuer    string `json:"idp_issuer"`
		IDPClientID  string `json:"idp_client_id"`
		IDToken      string `json:"idp_id_token"`
		Workload     string `json:"valid_jwt"`
	}
}

func taskOf(lookup func(string) string) (t task, err error) {
	t.scenario = lookup("MCP_CONFORMANCE_SCENARIO")
	if text := lookup("MCP_CONFORMANCE_CONTEXT"); text != "" {
		err = json.Unmarshal([]byte(text), &t.context)
	}
	return t, err
}

// signsIn says whether the scenario is about signing in.
func (t task) signsIn() bool { return strings.HasPrefix(t.scenario, "auth/") }

// row is the server as somebody would configure it who was told what the suite tells.
func (t task) row(url string) row {
	auth := map[string]string{}
	set := func(name, value string) {
		if value != "" {
			auth[name] = value
		}
	}
	set("client_id", t.context.ClientID)
	set("client_secret", t.context.ClientSecret)
	set("private_key", t.context.PrivateKey)
	set("idp_issuer", t.context.IDPIssuer)
	set("idp_client_id", t.context.IDPClientID)
	set("id_token", t.context.IDToken+t.context.Workload)
	switch {
	case strings.HasPrefix(t.scenario, "auth/client-credentials-"):
		set("type", "client_credentials")
	case t.context.IDToken != "":
		set("type", "enterprise")
	case t.context.Workload != "":
		set("type", "workload")
	}
	if t.scenario == "auth/basic-cimd" {
		set("client_metadata_url", "https://conformance-test.local/client-metadata.json") // the suite's word for it
	}
	r := row{Name: "upstream", Type: "http", URL: url}
	if len(auth) > 0 {
		r.Auth = auth
	}
	return r
}

// signIn is a person at the gateway's side: as long as the server's state has an address, it is opened, and when the
// server is mounted nothing is left to do. News wakes them, list prints the state of the configured servers as JSON.
func signIn(ctx context.Context, news <-chan string, list func(context.Context) ([]byte, error)) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	visited := ""
	for {
		select {
		case <-news:
		case <-tick.C: // what was said in the log may not be in the store yet
		case <-ctx.Done():
			return errors.New("nobody could sign in, and the server was not mounted")
		}
		text, err := list(ctx)
		if err != nil {
			return err
		}
		var rows []struct {
			Phase, Fault string
			SignIn       string `json:"sign_in"`
		}
		if err := json.Unmarshal(text, &rows); err != nil || len(rows) != 1 {
			return fmt.Errorf("the list of servers is %s: %w", text, err)
		}
		switch s := rows[0]; {
		case s.Phase == "ready":
			return nil
		case s.Phase == "faulted":
			return errors.New(s.Fault)
		case s.Phase == "needs-sign-in" && s.SignIn != visited:
			visited = s.SignIn
			if err := visit(ctx, visited); err != nil {
				return err
			}
		}
	}
}

// visit opens an address as a browser would, and goes where it is sent.
func visit(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("signing in ended at %s with status %d: %s", resp.Request.URL.Host, resp.StatusCode,
			bytes.TrimSpace(page))
	}
	return err
}

// callAll lists the tools at a URL and calls each, as a client whose user opens the pages they are asked to.
func callAll(ctx context.Context, url string) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "peers", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Fprintln(os.Stderr, "peers: asked:", req.Params.Message)
			if err := visit(ctx, req.Params.URL); err != nil {
				return nil, err
			}
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	called := 0
	for _, tool := range list.Tools {
		if strings.HasPrefix(tool.Name, "drawbridge_") {
			continue // the gateway's own
		}
		called++
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool.Name,
			Arguments: map[string]any{}}); err != nil {
			return fmt.Errorf("call %s: %w", tool.Name, err)
		}
	}
	if called == 0 {
		return errors.New("the server has no tools")
	}
	return nil
}
