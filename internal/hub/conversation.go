package hub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/server"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
)

// A pendingRequest is a request of the client that has no response yet.
type pendingRequest struct {
	id     json.RawMessage
	method string
	// line is what may be sent to another hub if this one ends: the request as the client sent it, or a request that
	// resumes it; nil if there is nothing.
	line []byte
	// name is the name of the called tool. modern reports whether the client that sent the request is stateless.
	name   string
	modern bool
	// batch is the number of the batch that contained the request; 0 if the request was not in a batch. order is the
	// position of the request among all requests of the client.
	batch, order int
}

// isRepeatable reports whether a request with this method is safe to send twice: it only reads data, or sets a value.
func isRepeatable(method string) bool {
	switch method {
	case mcp.MethodInitialize, mcp.MethodPing, mcp.MethodDiscover, mcp.MethodListen, mcp.MethodSetLevel,
		mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodPromptsGet, mcp.MethodComplete,
		mcp.MethodResourcesList, mcp.MethodTemplatesList, mcp.MethodResourcesRead, mcp.MethodSubscribe,
		mcp.MethodUnsubscribe,
		mcp.MethodTasksGet, mcp.MethodTasksList, mcp.MethodTasksResult,
		mcp.MethodSkillsList, mcp.MethodSkillsGet, mcp.MethodDirectoryRead:
		return true
	}
	return false
}

// newPendingRequest returns the pendingRequest for a request that was received as line.
func newPendingRequest(m mcp.Message, line []byte) pendingRequest {
	f := pendingRequest{id: m.ID, method: m.Method}
	switch {
	case isRepeatable(m.Method):
		f.line = line
	case m.Method == mcp.MethodToolsCall:
		f.name = rawjson.GetString(m.Params, "name")
		f.modern = mcp.ProtocolVersion(m.Params) != ""
		if f.name == toolsearch.RunPythonName {
			f.line = resumeLine(m)
		}
	default:
		f.modern = mcp.ProtocolVersion(m.Params) != ""
	}
	return f
}

// resumeLine returns the call of run_python that resumes the run of the call m at another hub. It never starts a new run.
func resumeLine(m mcp.Message) []byte {
	if rawjson.Get(m.Params, "_meta", mcp.MetaResume) == nil {
		m.Params = rawjson.Apply(m.Params, rawjson.Put([]byte("true"), "_meta", mcp.MetaResume))
	}
	return m.Append(nil)
}

// lostResponse returns an error response to a request whose hub ended before it responded, in the form that the server
// uses for faults. It is marked as ambiguous, because the request may have taken effect.
func (f pendingRequest) lostResponse() mcp.Message {
	const cause = "the hub ended before the response, and the request may have taken effect"
	data := fmt.Appendf(nil, `{"code":%q,"ambiguous":true}`, drawbridge.Transient)
	if f.method != mcp.MethodToolsCall {
		return mcp.Message{ID: f.id, Error: mcp.NewErrorObject(mcp.CodeInternal, f.method+": "+cause, data)}
	}
	text := rawjson.Quote("call " + f.name + ": " + cause + " (check the result before you call again)")
	result := append([]byte(`{"content":[{"type":"text","text":`), text...)
	result = append(append(result, `}],"isError":true,"_meta":{"`+server.FaultMeta+`":`...), data...)
	result = append(result, '}')
	if f.modern {
		result = append(result, `,"resultType":"complete"`...)
	}
	return mcp.Message{ID: f.id, Result: append(result, '}')}
}

// lostResponseLines returns the error responses to lost requests, each as one line. The responses to the requests of
// one batch are one line together.
func lostResponseLines(lost []pendingRequest) (lines [][]byte) {
	batches := map[int]int{}
	for _, f := range lost {
		answer := f.lostResponse().Append(nil)
		at, started := batches[f.batch]
		switch {
		case f.batch == 0:
			lines = append(lines, append(answer, '\n'))
		case !started:
			batches[f.batch] = len(lines)
			lines = append(lines, append(append([]byte{'['}, answer...), ']', '\n'))
		default:
			open := bytes.TrimSuffix(lines[at], []byte("]\n"))
			lines[at] = append(append(append(open, ','), answer...), ']', '\n')
		}
	}
	return lines
}

// A conversation is the state that a shim needs to continue its client's MCP conversation at another hub. Its methods
// do not lock; the caller must.
type conversation struct {
	// initialize, initialized, level and subscribed are the lines with which a stateful client set up its session.
	// subscribed holds the subscribe requests by URI.
	initialize, initialized, level []byte
	subscribed                     map[string][]byte
	pending                        map[string]pendingRequest
	batchCount, requestCount       int
	// hubNumber is the number of the current hub, counted from 0. hubRequests holds the current hub's requests that the
	// client has not answered. The keys are the ids that were sent to the client, the values the hub's own ids.
	hubNumber   int
	hubRequests map[string]json.RawMessage
	// unsureLines are lines that a hub wrote or was about to write when it ended, so the client may or may not have
	// received them. partialLine reports whether the client may have received only a part of a line.
	unsureLines []byte
	partialLine bool
	// openReplays is the number of repeated requests that the current hub has not answered. replaysDone is closed when
	// openReplays becomes 0.
	openReplays int
	replaysDone chan struct{}
}

func newConversation() *conversation {
	return &conversation{subscribed: map[string][]byte{}, pending: map[string]pendingRequest{},
		hubRequests: map[string]json.RawMessage{}}
}

// clientLine processes a line that the client sent, and updates the state. It returns the line to send to the hub; nil
// if the line must not be sent.
func (t *conversation) clientLine(line []byte) []byte {
	if mcp.IsBatch(line) {
		t.batchCount++
		for value := range rawjson.Elements(line) {
			if m, err := mcp.ParseMessage(value); err == nil && m.IsRequest() {
				f := newPendingRequest(m, value)
				f.batch, f.line = t.batchCount, nil
				t.addRequest(f)
			}
		}
		return line
	}
	m, err := mcp.ParseMessage(line)
	switch {
	case err != nil:
		return t.clientLineOfSeveral(line)
	case m.IsRequest():
		t.addRequest(newPendingRequest(m, line))
		t.keepSessionState(m, line)
	case m.IsResponse():
		return t.clientResponse(m, line)
	case m.Method == mcp.NoteInitialized:
		t.initialized = line
	case m.Method == mcp.NoteCancelled:
		delete(t.pending, string(rawjson.Get(m.Params, "requestId"))) // a cancelled request may never be answered
	}
	return line
}

// clientLineOfSeveral processes a line that is not exactly one message. If the line consists of several messages, as
// some clients send them, it processes each message. Any other line is passed to the hub unchanged, and the hub
// responds with an error.
func (t *conversation) clientLineOfSeveral(line []byte) []byte {
	values := splitMessages(line)
	if len(values) < 2 {
		return line
	}
	var heard [][]byte
	for _, value := range values {
		if value = t.clientLine(value); value != nil {
			heard = append(heard, value)
		}
	}
	if heard == nil {
		return nil
	}
	return bytes.Join(heard, []byte(" "))
}

// splitMessages returns the messages of a line or a batch, up to the first invalid JSON.
func splitMessages(line []byte) (values [][]byte) {
	if !mcp.IsBatch(line) {
		values, _ = mcp.SplitJSONValues(line)
		return values
	}
	for value := range rawjson.Elements(line) {
		values = append(values, value)
	}
	return values
}

func (t *conversation) addRequest(f pendingRequest) {
	t.requestCount++
	f.order = t.requestCount
	t.pending[string(f.id)] = f
}

// keepSessionState stores a line that sets up or changes the session.
func (t *conversation) keepSessionState(m mcp.Message, line []byte) {
	switch m.Method {
	case mcp.MethodInitialize:
		t.initialize = line
	case mcp.MethodSetLevel:
		t.level = line
	case mcp.MethodSubscribe:
		t.subscribed[rawjson.GetString(m.Params, "uri")] = line
	case mcp.MethodUnsubscribe:
		delete(t.subscribed, rawjson.GetString(m.Params, "uri"))
	}
}

// clientResponse returns a response of the client with the id that the current hub gave the request. It returns nil if
// an earlier hub sent the request: such a response is dropped.
func (t *conversation) clientResponse(m mcp.Message, line []byte) []byte {
	delete(t.hubRequests, string(m.ID))
	if t.hubNumber == 0 {
		return line
	}
	id, _ := rawjson.DecodeString(m.ID)
	own, ok := strings.CutPrefix(id, t.hubIDPrefix())
	if !ok {
		return nil
	}
	m.ID = json.RawMessage(own)
	return m.Append(nil)
}

// hubIDPrefix returns the prefix that is added to the current hub's request ids before they are sent to the client. It
// is needed because an earlier hub may have used the same ids.
func (t *conversation) hubIDPrefix() string { return "hub" + strconv.Itoa(t.hubNumber) + "/" }

// hubLine processes a line that the hub sent, and updates the state. It returns the line to send to the client. It
// returns nil if the line is not for the client, or if it is incomplete because the hub died.
func (t *conversation) hubLine(line []byte) []byte {
	if mcp.IsBatch(line) {
		if rawjson.Valid(line) != nil {
			return nil
		}
		for value := range rawjson.Elements(line) {
			if m, err := mcp.ParseMessage(value); err == nil && m.IsResponse() {
				delete(t.pending, string(m.ID))
			}
		}
		return line
	}
	m, err := mcp.ParseMessage(line)
	switch {
	case err != nil:
		return nil
	case m.IsResponse():
		if isReplayID(m.ID) {
			t.replayAnswered()
			return nil
		}
		delete(t.pending, string(m.ID))
	case m.IsRequest():
		own := m.ID
		m.ID = t.clientID(own)
		if t.hubRequests[string(m.ID)] = own; t.hubNumber > 0 {
			return m.Append(nil)
		}
	case m.Method == mcp.NoteCancelled:
		id := t.clientID(rawjson.Get(m.Params, "requestId"))
		delete(t.hubRequests, string(id))
		if t.hubNumber > 0 {
			m.Params = rawjson.Apply(m.Params, rawjson.Put(id, "requestId"))
			return m.Append(nil)
		}
	}
	return line
}

// clientID returns the id that the client sees for a request of the hub with the id own.
func (t *conversation) clientID(own json.RawMessage) json.RawMessage {
	if t.hubNumber == 0 {
		return own
	}
	return rawjson.Quote(t.hubIDPrefix() + string(own))
}

// nextHubNumber returns the number that the next hub gets: 0 for the first hub.
func (t *conversation) nextHubNumber() int {
	if t.requestCount > 0 { // there was a hub before
		return t.hubNumber + 1
	}
	return t.hubNumber
}

// replayIDPrefix is the prefix of the ids of requests that a shim repeats for its client. If a client used this prefix
// itself, it would not receive the responses.
const replayIDPrefix = `"drawbridge/again/`

func isReplayID(id json.RawMessage) bool { return bytes.HasPrefix(id, []byte(replayIDPrefix)) }

// replayInitialize returns the client's initialize request with a replay id. It opens the client's session at another
// hub. replayInitialize returns nil if there is no session, or if the client's own initialize request is still
// unanswered.
func (t *conversation) replayInitialize() []byte {
	if t.initialize == nil {
		return nil
	}
	m, _ := mcp.ParseMessage(t.initialize) // cannot fail: it was parsed before
	if _, open := t.pending[string(m.ID)]; open {
		return nil // the client's own request is repeated instead
	}
	return withReplayID(t.initialize, 0)
}

// replaySession returns the lines that set up the session after initialize. settled is closed when the hub has answered
// all requests in these lines.
func (t *conversation) replaySession() (lines [][]byte, settled <-chan struct{}) {
	said := slices.Collect(maps.Values(t.subscribed))
	if t.level != nil {
		said = append(said, t.level)
	}
	t.openReplays, t.replaysDone = len(said), make(chan struct{})
	if t.openReplays == 0 {
		close(t.replaysDone)
	}
	if t.initialized != nil {
		lines = append(lines, t.initialized)
	}
	for i, line := range said {
		lines = append(lines, withReplayID(line, 1+i))
	}
	return lines, t.replaysDone
}

// replayAnswered counts the response to a repeated request.
func (t *conversation) replayAnswered() {
	if t.openReplays--; t.openReplays == 0 {
		close(t.replaysDone)
	}
}

// withReplayID returns a request with the replay id that has the number n.
func withReplayID(line []byte, n int) []byte {
	m, _ := mcp.ParseMessage(line) // cannot fail: it was parsed before
	m.ID = json.RawMessage(replayIDPrefix + strconv.Itoa(n) + `"`)
	return m.Append(nil)
}

// changeHub updates the state when another hub takes over. It returns the unanswered requests to repeat at the new hub,
// the lost requests, which must not be repeated, and lines for the client. These lines cancel the requests that the
// earlier hub sent to the client and that are unanswered.
func (t *conversation) changeHub() (repeat [][]byte, lost []pendingRequest, cancelled [][]byte) {
	t.hubNumber = t.nextHubNumber()
	inOrder := slices.SortedFunc(maps.Values(t.pending), func(a, b pendingRequest) int { return a.order - b.order })
	for _, f := range inOrder {
		if f.line != nil {
			repeat = append(repeat, f.line)
			continue
		}
		lost = append(lost, f)
		delete(t.pending, string(f.id))
	}
	for id := range t.hubRequests {
		params := fmt.Appendf(nil, `{"requestId":%s,"reason":"the hub that asked has ended"}`, id)
		cancelled = append(cancelled, append(mcp.Message{Method: mcp.NoteCancelled, Params: params}.Append(nil), '\n'))
	}
	clear(t.hubRequests)
	return repeat, lost, cancelled
}

// openRequests returns the number of unanswered requests of the client, without listen requests, which are repeated at
// the next hub. The client moves to another hub when the number is 0.
func (t *conversation) openRequests() (n int) {
	for _, f := range t.pending {
		if f.method != mcp.MethodListen {
			n++
		}
	}
	return n
}
