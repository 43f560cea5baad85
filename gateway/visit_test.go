//go:build !nomcp

package gateway_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A guest is the official client at one of our doors, whose user does what a page asks of them.
type guest struct {
	*mcp.ClientSession
	mu      sync.Mutex
	visited []string // the messages of the pages
}

func (g *guest) pages() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.visited)
}

// guestAt connects the client, which can take its user to a page, by standard input and output where stdio says so.
func guestAt(t *testing.T, r *running, p *oauthtest.Provider, protocol string, stdio bool) *guest {
	t.Helper()
	g := &guest{}
	var visits sync.WaitGroup
	t.Cleanup(visits.Wait)
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(ctx context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if q.Params.Mode != "url" || !strings.HasPrefix(q.Params.URL, p.Issuer+"/") {
				return &mcp.ElicitResult{Action: "decline"}, nil
			}
			g.mu.Lock()
			g.visited = append(g.visited, q.Params.Message)
			g.mu.Unlock()
			visits.Go(func() {
				if err := p.AllowSignIn(context.WithoutCancel(ctx), q.Params.URL); err != nil {
					t.Errorf("the user's browser: %v", err)
				}
			})
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: r.url}
	if stdio {
		transport = pipesTo(t, r)
	}
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	g.ClientSession = session
	return g
}

// pipesTo opens the door of standard input and output.
func pipesTo(t *testing.T, r *running) mcp.Transport {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		_ = r.Server().ServeStdio(ctx, inR, outW) // it ends with the test
		_ = outW.Close()
	})
	t.Cleanup(func() {
		stop()
		_ = inW.Close()
		_ = outR.Close()
		serving.Wait()
	})
	return &mcp.IOTransport{Reader: outR, Writer: inW}
}

// says calls a tool and returns the text of its result.
func (g *guest) says(t *testing.T, name string, arguments any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := g.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var text strings.Builder
	for _, c := range result.Content {
		if one, ok := c.(*mcp.TextContent); ok {
			text.WriteString(one.Text)
		}
	}
	if result.IsError {
		t.Fatalf("%s: %s", name, &text)
	}
	return text.String()
}

// TestAClientTakesItsUserToSignIn: a call of a server that wants to know who asks goes through, since the client can
// take its user to the page; and so does one that needs more rights.
func TestAClientTakesItsUserToSignIn(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		for _, stdio := range []bool{false, true} {
			for _, legacy := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, stdio %v, legacy server %v", protocol, stdio, legacy), func(t *testing.T) {
					t.Parallel()
					p := oauthtest.New(t,
						oauthtest.Options{Knobs: oauthtest.Knobs{Server: oauthtest.Server{OpenUntilCall: true,
							Legacy: legacy}}})
					r := runGateway(t, fmt.Sprintf(`{"servers":{"protected":{"type":"http","url":%q}}}`,
						p.ResourceURL), "")
					g := guestAt(t, r, p, protocol, stdio)
					if got := g.says(t, "protected__whoami", nil); !strings.Contains(got, "ada") {
						t.Errorf("the server knows %s", got)
					}
					if got := g.says(t, "protected__whoami", nil); !strings.Contains(got, "ada") ||
						len(g.pages()) != 1 {
						t.Errorf("the server knows %s; pages: %q", got, g.pages())
					}
					g.says(t, "protected__secret_tool", nil)
					if got := g.pages(); len(got) != 2 || got[0] != `Sign in to use the server "protected".` {
						t.Errorf("pages: %q", got)
					}
				})
			}
		}
	}
}

// TestAClientSignsInAtANewServer: of a server that has never been listed there is nothing to call but the card that
// signs in.
func TestAClientSignsInAtANewServer(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		for _, stdio := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stdio %v", protocol, stdio), func(t *testing.T) {
				t.Parallel()
				p := oauthtest.New(t, oauthtest.Options{})
				r := runGateway(t, fmt.Sprintf(`{"servers":{"protected":{"type":"http","url":%q}}}`, p.ResourceURL), "")
				g := guestAt(t, r, p, protocol, stdio)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				eventually(t, "the card names no server",
					func() bool { return strings.Contains(g.says(t, "drawbridge_sign_in", nil), "protected") })
				g.says(t, "drawbridge_sign_in", map[string]any{"server": "protected"})
				eventually(t, "the server's tools do not come", func() bool {
					return slices.Contains(namesOf(ctx, t, g),
						"protected__whoami")
				})
				if got := g.says(t, "protected__whoami", nil); !strings.Contains(got, "ada") || len(g.pages()) != 1 {
					t.Errorf("the server knows %s; pages: %q", got, g.pages())
				}
			})
		}
	}
}

func namesOf(ctx context.Context, t *testing.T, g *guest) (names []string) {
	t.Helper()
	for tool, err := range g.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}
