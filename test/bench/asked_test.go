//go:build bench

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stateful has a server of the upstream's speak the stateful generation only, which asks its client by requests.
func stateful() []string {
	var versions []string
	for _, v := range mcp.SupportedProtocolVersions() {
		if v < revision {
			versions = append(versions, v)
		}
	}
	return versions
}

// ask is a tool that asks the user for a name before it answers.
func ask(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{
		Message:         "Who are you?",
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`),
	})
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("hello, %v",
		answer.Content["name"])}}}, nil
}

const (
	answered = `{"action":"accept","content":{"name":"Ada"}}`
	askable  = `{"elicitation":{}}`
)

// An askedLegacy is a stateful client on a pipe that answers what it is asked in the midst of a call.
type askedLegacy struct{ *stdioClient }

func (c askedLegacy) call(r request) ([]byte, error) {
	c.id++
	c.buf = append(strconv.AppendInt(append(c.buf[:0], `{"jsonrpc":"2.0","id":`...), int64(c.id), 10), r.body...)
	if _, err := c.in.Write(append(c.buf, '\n')); err != nil {
		return nil, err
	}
	for {
		line, err := c.line()
		switch {
		case err != nil:
			return nil, err
		case bytes.Contains(line, []byte(`"elicitation/create"`)):
			var asked struct{ ID json.RawMessage }
			if err := json.Unmarshal(line, &asked); err != nil {
				return nil, err
			}
			if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", asked.ID,
				answered); err != nil {
				return nil, err
			}
		case bytes.Contains(line, []byte(`"method"`)):
		default:
			return line, r.check(line)
		}
	}
}

// An askedModern is a stateless client on a pipe that calls again with the answers to what a result asked.
type askedModern struct{ *stdioClient }

func (c askedModern) call(r request) ([]byte, error) {
	first := r
	first.want = []byte(`"input_required"`)
	line, err := c.stdioClient.call(first)
	if err != nil {
		return nil, err
	}
	var asked struct {
		Result struct {
			RequestState  json.RawMessage
			InputRequests map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	for name := range asked.Result.InputRequests {
		more := fmt.Sprintf(`,"requestState":%s,"inputResponses":{%q:%s}}}`, asked.Result.RequestState, name, answered)
		r.body = append(bytes.TrimSuffix(bytes.Clone(r.body), []byte("}}")), more...)
	}
	return c.stdioClient.call(r)
}

// parked measures a call whose server asks in the midst of it, for a stateless client that comes back with the answer,
// against the same for a stateful client, whose call just waits.
func parked(t *testing.T) []line {
	plain := toolCall("up__ask", `{}`, "hello, Ada")
	asking := plain
	asking.body = bytes.Replace(asking.body, []byte(`clientCapabilities":{}`),
		[]byte(`clientCapabilities":`+askable), 1)
	child := func() (*benchProcess, *stdioClient) { // each has a hub of its own
		config, store := configure(t, onStdio("up", self(t), "stateful"))
		p := start(t, serve(config, store))
		return p, &stdioClient{in: p.in, out: p.out}
	}
	oldProcess, oldClient := child()
	youngProcess, youngClient := child()
	old, young := askedLegacy{oldClient}, askedModern{youngClient}
	if err := old.open(askable); err != nil {
		t.Fatal(err)
	}
	stateful := contender{name: "legacy → Drawbridge → legacy", clients: []client{old}, request: plain.legacy(),
		p: oldProcess}
	stateless := contender{name: "modern → Drawbridge → legacy", clients: []client{young}, request: asking,
		p: youngProcess}
	for _, c := range []contender{stateful, stateless} {
		mounted(t, c.clients[0], c.request)
	}
	r := latencies(t, rounds(), calls(300), &stateful, &stateless)
	return held([]line{r.ratio("parked elicitation ÷ a plain one", &stateless, &stateful, 2)})
}
