//go:build !nomcp

package gateway_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"go.uber.org/goleak"
)

// A faultRow is something that goes wrong, in each cell, while a server has asked its client something.
type faultRow struct {
	name string
	// row has more members of the server's row.
	row string
	// happen has it go wrong, and shows how the call ends.
	happen func(b *box)
	// closed reports that the gateway is closed afterwards.
	closed bool
}

// soon is a time limit for calls that are to run into it. A call that waits for its caller may take ten times as long.
const soon = `"timeout":300`

func faultRows() []faultRow {
	return []faultRow{
		{name: "drop: the connection is cut while a question is open", happen: func(b *box) { openQuestion(b, b.cut) }},
		{name: "restart: the server starts again between question and answer",
			happen: func(b *box) { openQuestion(b, b.restart) }},
		{name: "drop: the connection is cut while a call is going on", happen: dropCall},
		{name: "slow: the question is never answered", row: soon, happen: neverAnswered},
		{name: "slow: the server never answers", row: soon, happen: serverSilent},
		{name: "duplicate: the answer comes twice", happen: answeredTwice},
		{name: "tamper: the state is changed, and the client never comes back", row: soon, happen: func(b *box) {
			refused := b.retried(func(params, state string) (string, string) { return params, strings.ToLower(state) })
			if !strings.HasPrefix(refused, "-32602 tools/call: requestState: ") {
				b.Errorf("the changed state is answered with %q", refused)
			}
		}},
		{name: "the client is gone while a question is open", row: soon, happen: clientGone},
		{name: "the gateway is closed while questions are open", happen: gatewayClosed, closed: true},
	}
}

// TestMatrixFaults has everything go wrong in every cell. Afterwards calls work as before, the server has none that
// no one waits for, and when the gateway is closed there is no child process, and no goroutine.
func TestMatrixFaults(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("faults", func(t *testing.T) {
		for _, f := range faultRows() {
			for _, c := range cells {
				for _, p := range paths[:2] {
					t.Run(f.name+"/"+c.String()+"/"+p.String(), func(t *testing.T) {
						t.Parallel()
						b := &box{t, newRig(t, plan{server: c.server, upstream: p.upstream, row: f.row}), c, p}
						f.happen(b)
						if !f.closed {
							b.worksAgain()
						}
						b.leavesNothing()
					})
				}
			}
		}
	})
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// worksAgain waits until calls go through, and questions too.
func (b *box) worksAgain() {
	b.Helper()
	c := b.asker()
	eventually(b.T, "calls do not work again",
		func() bool { return textOf(c.tool("echo", `{"text":"again"}`)) == "again" })
	eventually(b.T, "questions do not work again",
		func() bool { return answered(c.tool("ask", `{"rounds":[["form"]]}`)) })
	eventually(b.T, "calls stay open", func() bool { return len(b.open()) == 0 })
}

// leavesNothing closes the gateway, and looks for what is left.
func (b *box) leavesNothing() {
	b.Helper()
	b.stop()
	if open := b.open(); len(open) > 0 {
		b.Errorf("after the end the server has calls: %v", open)
	}
	for _, pid := range b.pids() {
		if p, err := os.FindProcess(pid); err == nil && p.Signal(syscall.Signal(0)) == nil {
			b.Errorf("after the end there is a child process %d", pid)
		}
	}
}

// cut breaks every connection to the server. One on stdio does not outlive that.
func (r *rig) cut() {
	if r.web == nil {
		r.restart()
		return
	}
	r.web.CloseClientConnections()
}

// A parked call has asked its client something: a stateful one, during its request, or a stateless one, by the
// result of its request.
type parked struct {
	c        *client
	answer   chan string // what a stateful client answers
	p        *pending
	params   string
	question json.RawMessage
}

// park has the server ask a client that thinks.
func (b *box) park() *parked {
	b.Helper()
	k := &parked{c: b.asker(), answer: make(chan string, 1), params: toolParams("ask", `{"rounds":[["form"]]}`)}
	if b.cell.client == drawbridge.Legacy {
		k.c.answer = func(string, json.RawMessage) (string, string) { return <-k.answer, "" }
		b.Cleanup(func() { close(k.answer) })
	}
	k.p = k.c.start(mcp.MethodToolsCall, k.params)
	if b.cell.client == drawbridge.Modern {
		m := k.p.wait()
		if k.question = m.Result; len(questionsIn(m.Result)) != 1 {
			b.Fatalf("it asks nothing: %s%s", m.Result, m.Error)
		}
		return k
	}
	k.c.awaitAsked(1)
	return k
}

// end answers, and returns what the call ends with.
func (k *parked) end() mcp.Message {
	k.c.t.Helper()
	if k.c.era == drawbridge.Modern {
		return k.c.call(mcp.MethodToolsCall, k.c.retry(k.params, k.question))
	}
	k.answer <- formAnswer
	return k.p.wait()
}

// failed reports whether a call ended with a result that describes what kept the server from answering.
func failed(m mcp.Message, text string) bool {
	return string(rawjson.Get(m.Result, "isError")) == "true" && rawjson.Get(m.Result, "_meta",
		"drawbridge/fault") != nil &&
		strings.Contains(textOf(m), text)
}

// openQuestion has something happen to the server while a client thinks. A stateful server does not know any more what
// it asked: the call ends with a fault that says so. A stateless one goes on where it was, as soon as it is there.
func openQuestion(b *box, happen func()) {
	k := b.park()
	happen()
	m := k.end()
	switch {
	case b.cell.server == drawbridge.Modern && answered(m):
	case b.cell.server == drawbridge.Modern && failed(m, "up"): // it was not there yet
	case b.cell.server == drawbridge.Legacy && failed(m, "call ask on up: "):
	default:
		b.Errorf("the call ends with %s%s", m.Result, m.Error)
	}
}

// dropCall has the connection cut during a call.
func dropCall(b *box) {
	c, before := b.plain(), len(b.records())
	p := c.start(mcp.MethodToolsCall, toolParams("wait", `{}`))
	b.awaitEvent(b.T, before, "begin", "wait")
	b.cut()
	if m := p.wait(); !failed(m, "call wait on up: ") || string(rawjson.Get(m.Result, "_meta", "drawbridge/fault",
		"ambiguous")) != "true" {
		b.Errorf("the call ends with %s%s", m.Result, m.Error)
	}
}

// neverAnswered has a client that never answers: its call runs out of time. A stateless server has no call to end.
func neverAnswered(b *box) {
	k := b.park()
	eventually(b.T, "the server's call goes on", func() bool { return len(b.open()) == 0 })
	if b.cell.client == drawbridge.Legacy {
		if m := k.p.wait(); !failed(m, "timeout") {
			b.Errorf("the call ends with %s%s", m.Result, m.Error)
		}
		return
	}
	m := k.end()
	if b.cell.server == drawbridge.Legacy && !failed(m, "timeout") ||
		b.cell.server == drawbridge.Modern && !answered(m) {
		b.Errorf("a late answer is answered with %s%s", m.Result, m.Error)
	}
}

// serverSilent has a server that never answers: the call runs out of time, and the server is told.
func serverSilent(b *box) {
	before := len(b.records())
	if m := b.plain().tool("wait", `{}`); !failed(m, "timeout") {
		b.Errorf("the call ends with %s%s", m.Result, m.Error)
	}
	b.awaitEvent(b.T, before, "cancelled", "wait")
}

// answeredTwice has a stateful client send its answer twice, and a stateless one its retry, at once. The call has one
// answer; of two retries of a call that a stateful server waits with, the later is told that it is too late.
func answeredTwice(b *box) {
	k := b.park()
	if b.cell.client == drawbridge.Legacy {
		k.c.mu.Lock()
		answer := mcp.Message{ID: k.c.asked[0].ID, Result: json.RawMessage(formAnswer)}
		k.c.mu.Unlock()
		for range 2 {
			if err := k.c.line.send(k.c.ctx, answer); err != nil {
				b.Error(err)
			}
		}
		if m := k.p.wait(); !answered(m) {
			b.Errorf("the call ends with %s%s", m.Result, m.Error)
		}
		return
	}
	retry := k.c.retry(k.params, k.question)
	one, two := k.c.start(mcp.MethodToolsCall, retry), k.c.start(mcp.MethodToolsCall, retry)
	var outcomes []string
	for _, p := range []*pending{one, two} {
		m := p.wait()
		if !answered(m) && m.Error == nil {
			b.Errorf("a retry is answered with %s", m.Result)
		}
		outcomes = append(outcomes, refusalOf(m))
	}
	slices.Sort(outcomes)
	if outcomes[0] != "" || b.cell.server == drawbridge.Legacy && !strings.Contains(outcomes[1],
		"no call waits for it") {
		b.Errorf("the retries end with %q", outcomes)
	}
}

// clientGone has a client hang up while it is asked: its call ends at the server.
func clientGone(b *box) {
	k := b.park()
	k.p.cancel()
	k.c.line.hangUp()
	eventually(b.T, "the server's call goes on", func() bool { return len(b.open()) == 0 })
}

// gatewayClosed closes the gateway while some calls wait for their clients.
func gatewayClosed(b *box) {
	var all []*parked
	for range 3 {
		all = append(all, b.park())
	}
	var ended sync.WaitGroup
	for _, k := range all {
		ended.Go(func() { <-k.p.done })
	}
	b.stop()
	ended.Wait()
}
