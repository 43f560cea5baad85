//go:build unix

package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/command"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
)

// commandOptions are the options of a command in the house.
func (h *house) commandOptions() hub.Options {
	o := h.options()
	o.Config.Environ = []string{"HOME=" + h.home, "PATH=" + os.Getenv("PATH")}
	return o
}

// callTool makes a call as the command line does and returns the result, the events and the error.
func (h *house) callTool(ctx context.Context, params string, event func(command.Event)) (string, error) {
	h.t.Helper()
	r := command.Request{Method: "tools/call", Params: command.RawText(params)}
	result, err := hub.Call(ctx, h.commandOptions(), r, event)
	return string(result), err
}

func ignoreEvents(command.Event) {}

func TestCallsOfTheCommandLine(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	if _, err := h.callTool(t.Context(), `{"name":"x"}`, ignoreEvents); !errors.Is(err, hub.ErrNoHub) {
		t.Errorf("without a hub: %v", err)
	}
	h.open().initialize(`{}`).call("everything-legacy__echo", `{"text":"warm"}`)
	before := pidsOf(h.state(func(s hub.State) bool { return len(s.Clients) == 1 }))

	got, err := h.callTool(t.Context(), `{"name":"everything-legacy__echo","arguments":{"text":"a <b> & c"}}`,
		ignoreEvents)
	// the server's own bytes, as its encoder wrote them
	if err != nil || !strings.Contains(got, `"a \u003cb\u003e \u0026 c"`) {
		t.Errorf("echo: %s, %v", got, err)
	}
	var steps []command.Progress
	if _, err := h.callTool(t.Context(), `{"name":"everything-legacy__progress","arguments":{"steps":3}}`,
		func(e command.Event) { steps = append(steps, *e.Progress) }); err != nil || len(steps) != 3 ||
		steps[2].Progress != 3 {
		t.Errorf("progress: %+v, %v", steps, err)
	}
	_, err = h.callTool(t.Context(), `{"name":"everything-legacy__nope"}`, ignoreEvents)
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.NotFound ||
		f.Kind != drawbridge.UnknownCapability || f.Next != "drawbridge tools list" {
		t.Errorf("an unknown tool: %#v", err)
	}
	_, err = hub.Call(t.Context(), h.commandOptions(), command.Request{Method: "nope"}, ignoreEvents)
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.InvalidInput {
		t.Errorf("an unknown method: %#v", err)
	}
	after := pidsOf(h.state(func(s hub.State) bool { return len(s.Clients) == 1 }))
	if len(before) != 1 || len(after) != 1 || before[0] != after[0] {
		t.Errorf("servers before %v and after %v", before, after)
	}
}

// TestACommandThatEndsCancelsItsCall interrupts a command in the middle of a slow call.
func TestACommandThatEndsCancelsItsCall(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	h.open().initialize(`{}`).call("everything-legacy__echo", `{"text":"warm"}`)
	mark := filepath.Join(h.home, "mark")
	params, err := json.Marshal(map[string]any{"name": "everything-legacy__slow",
		"arguments": map[string]any{"ms": 600000, "mark": mark}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := h.callTool(ctx, string(params), ignoreEvents)
		ended <- err
	}()
	h.state(func(s hub.State) bool { // the call has begun: the server is asked a second time
		_, err := h.callTool(t.Context(), `{"name":"everything-legacy__echo","arguments":{"text":"beside"}}`, ignoreEvents)
		return err == nil
	})
	interrupt()
	err = <-ended
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || !f.Ambiguous || !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted call: %#v", err)
	}
	for range until(t) {
		if text, err := os.ReadFile(mark); err == nil && string(text) == "cancelled" {
			return
		}
	}
	t.Error("the server was not told that the call is cancelled")
}

// askRule makes every call of a tool wait for a person.
func (h *house) askRule(tool string) {
	h.t.Helper()
	text := "[[tools.policy.rules]]\neffect = \"ask\"\ntools = \"" + tool + "\"\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(h.file), "drawbridge.toml"), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func TestTheCommandLineAnswersItsApprovals(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	h.askRule("echo")
	h.open().initialize(`{}`).do("tools/list", `{}`)
	watching, stop := context.WithCancel(t.Context())
	pending := make(chan string, 100)
	watched := make(chan error, 1)
	go func() {
		watched <- hub.Subscribe(watching, h.commandOptions(), func(c hub.Change) error {
			for _, p := range c.Approvals {
				pending <- p.ID
			}
			return nil
		})
	}()
	for _, allow := range []bool{true, false} {
		var asked command.Approval
		got, err := h.callTool(t.Context(), `{"name":"everything-legacy__echo","arguments":{"text":"wait"}}`,
			func(e command.Event) {
				if e.Approval == nil {
					return // the server still starts
				}
				if asked = *e.Approval; asked.ID != <-pending {
					t.Errorf("a subscriber did not see %s", asked.ID)
				}
				if err := hub.Approve(t.Context(), h.commandOptions(), hub.ApprovalAnswer{ID: asked.ID,
					Allow: allow}); err != nil {
					t.Error(err)
				}
			})
		if string(asked.Call.Arguments) != `{"text":"wait"}` || asked.Call.Tool != "echo" {
			t.Errorf("the call was shown as %+v", asked.Call)
		}
		if allow && (err != nil || !strings.Contains(got, "wait")) {
			t.Errorf("allowed: %s, %v", got, err)
		}
		if !allow && (err == nil || !strings.Contains(err.Error(), "a person said no")) {
			t.Errorf("denied: %s, %v", got, err)
		}
	}
	if err := hub.Approve(t.Context(), h.commandOptions(), hub.ApprovalAnswer{ID: "k3f9qzab"}); err == nil ||
		!strings.Contains(err.Error(), "no call k3f9qzab is waiting") {
		t.Errorf("an answer to no call: %v", err)
	}
	stop()
	if err := <-watched; !errors.Is(err, context.Canceled) {
		t.Errorf("the subscription ended with %v", err)
	}
}

// TestAHubServesClientsOfTheLastRelease speaks to a hub in the lines that the release before the verb call wrote.
func TestAHubServesClientsOfTheLastRelease(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	h.open().initialize(`{}`).call("everything-legacy__echo", `{"text":"warm"}`)
	h.state(func(s hub.State) bool { return len(s.Clients) == 1 })
	socket, err := os.ReadFile(h.store + ".hub")
	if err != nil {
		t.Fatal(err)
	}
	var address struct{ Socket string }
	if err := json.Unmarshal(socket, &address); err != nil {
		t.Fatal(err)
	}
	home, err := json.Marshal("HOME=" + h.home)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := json.Marshal(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, lines, want string }{
		{"attach", `{"drawbridge":2,"want":"attach","pid":4242,"host":"old","dir":` + string(dir) + `,"environ":[` +
			string(home) + `]}
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"o","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/drawbridge/go"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"everything-legacy__echo","arguments":{"text":"from the last release"}}}
`, `"from the last release"`},
		{"state", `{"drawbridge":2,"want":"state","pid":4242}` + "\n", `"servers":[{"server":"everything-legacy"`},
		{"logs", `{"drawbridge":2,"want":"logs","pid":4242,"server":"nope"}` + "\n", `"code":"not_found"`},
		{"reload", `{"drawbridge":2,"want":"reload","pid":4242}` + "\n", `"added":[]`},
		{"reconnect", `{"drawbridge":2,"want":"reconnect","pid":4242,"server":"everything-legacy"}` + "\n", `{}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn, err := net.Dial("unix", address.Socket)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			var seen strings.Builder
			answers := json.NewDecoder(conn)
			hello, more, _ := strings.Cut(test.lines, "\n")
			if _, err := conn.Write([]byte(hello + "\n")); err != nil {
				t.Fatal(err)
			}
			for welcomed := false; !welcomed || !strings.Contains(seen.String(), test.want); {
				var line json.RawMessage
				if err := answers.Decode(&line); err != nil {
					t.Fatalf("%v after %s", err, seen.String())
				}
				seen.Write(line)
				if !welcomed && more != "" { // the rest follows the welcome
					if _, err := conn.Write([]byte(more)); err != nil {
						t.Fatal(err)
					}
				}
				welcomed = true
			}
			if !strings.HasPrefix(seen.String(), `{"drawbridge":2,`) {
				t.Errorf("the welcome is %s", seen.String())
			}
		})
	}
}
