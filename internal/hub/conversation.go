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
)

// A pendingRequest is a request of the client's that is not answered yet.
type pendingRequest struct {
	id     json.RawMessage
	method string
	// line is what was sent, for a request that may be sent again; nil for one that may not.
	line []byte
	// name is the tool of a call, modern says that its caller is stateless.
	name   string
	modern bool
	// batch numbers the batch that the request came in; 0 for none. at is the request's place among all.
	batch, order int
}

// isRepeatable says whether a request may be sent twice: what only reads may, and what sets something to a value.
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

// newPendingRequest notes a request, which came on that line.
func newPendingRequest(m mcp.Message, line []byte) pendingRequest {
	f := pendingRequest{id: m.ID, method: m.Method}
	switch {
	case isRepeatable(m.Method):
		f.line = line
	case m.Method == mcp.MethodToolsCall:
		f.name = rawjson.GetString(m.Params, "name")
		f.modern = mcp.ProtocolVersion(m.Params) != ""
	default:
		f.modern = mcp.ProtocolVersion(m.Params) != ""
	}
	return f
}

// lostResponse is the answer to a request whose hub died with it, as the surface would have given it: nobody knows
// whether it took effect.
func (f pendingRequest) lostResponse() mcp.Message {
	const cause = "the hub that carried the request has ended, and it may have taken effect"
	data := fmt.Appendf(nil, `{"code":%q,"ambiguous":true}`, drawbridge.Transient)
	if f.method != mcp.MethodToolsCall {
		return mcp.Message{ID: f.id, Error: mcp.NewErrorObject(mcp.CodeInternal, f.method+": "+cause, data)}
	}
	text := rawjson.Quote("call " + f.name + ": " + cause + " (look before you call again)")
	result := append([]byte(`{"content":[{"type":"text","text":`), text...)
	result = append(append(result, `}],"isError":true,"_meta":{"`+server.FaultMeta+`":`...), data...)
	result = append(result, '}')
	if f.modern {
		result = append(result, `,"resultType":"complete"`...)
	}
	return mcp.Message{ID: f.id, Result: append(result, '}')}
}

// lostResponseLines gives the lines that answer these flights, those of a batch in one.
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

// A conversation is what must be known of a conversation to go on with it at another hub. It is used under one lock.
type conversation struct {
	// What a stateful client said that counts for its session.
	initialize, initialized, level []byte
	subscribed                     map[string][]byte
	pending                        map[string]pendingRequest
	batchCount, requestCount       int
	// hubNumber counts hubs; asked are the hub's own requests that the client has not answered, by the id that the
	// client knows.
	hubNumber   int
	hubRequests map[string]json.RawMessage
	// unsureLines are lines that the client may have heard or not; cut says that it may have heard a part of one.
	unsureLines []byte
	partialLine bool
	// openReplays counts what was said again and is not answered, settled is closed when nothing is left of that.
	openReplays int
	replaysDone chan struct{}
}

func newConversation() *conversation {
	return &conversation{subscribed: map[string][]byte{}, pending: map[string]pendingRequest{},
		hubRequests: map[string]json.RawMessage{}}
}

// clientLine takes note of a line of the client's. It gives the line as the hub is to see it; nil for one that is for
// nobody.
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
		delete(t.pending, string(rawjson.Get(m.Params, "requestId"))) // it may never be answered
	}
	return line
}

// clientLineOfSeveral is said for a line that is no message, about which the hub says what is wrong, or several: these
// are seen in the wild.
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

// splitMessages gives the messages of a line, also those of a batch, up to what is no JSON.
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

// keepSessionState keeps what a session is to go on with.
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

// clientResponse passes an answer on to the hub that asked, and to no other.
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

// hubIDPrefix begins the ids by which the client knows this hub's requests: an earlier one may have used the same.
func (t *conversation) hubIDPrefix() string { return "hub" + strconv.Itoa(t.hubNumber) + "/" }

// hubLine takes note of a line of the hub's. It gives the line as the client is to see it; nil for one that is not for
// it, or that a hub which died left unfinished.
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

// clientID is the id by which the client knows a request of the hub's.
func (t *conversation) clientID(own json.RawMessage) json.RawMessage {
	if t.hubNumber == 0 {
		return own
	}
	return rawjson.Quote(t.hubIDPrefix() + string(own))
}

// nextHubNumber is the turn that begins with the next hub.
func (t *conversation) nextHubNumber() int {
	if t.requestCount > 0 { // there was a hub before
		return t.hubNumber + 1
	}
	return t.hubNumber
}

// The ids of what a shim says again for its client begin with this. No client's do, unless it wants to hear nothing.
const replayIDPrefix = `"drawbridge/again/`

func isReplayID(id json.RawMessage) bool { return bytes.HasPrefix(id, []byte(replayIDPrefix)) }

// replayInitialize is how the session begins at another hub; nil where there is none to go on with.
func (t *conversation) replayInitialize() []byte {
	if t.initialize == nil {
		return nil
	}
	m, _ := mcp.ParseMessage(t.initialize) // it was parsed before
	if _, open := t.pending[string(m.ID)]; open {
		return nil // it is not answered yet: it is asked again itself
	}
	return withReplayID(t.initialize, 0)
}

// replaySession is what follows the greeting. settled is closed when the hub has answered all of it.
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

// replayAnswered notes the answer to something that was said again.
func (t *conversation) replayAnswered() {
	if t.openReplays--; t.openReplays == 0 {
		close(t.replaysDone)
	}
}

// withReplayID is a request under an id of our own.
func withReplayID(line []byte, n int) []byte {
	m, _ := mcp.ParseMessage(line) // it was parsed before
	m.ID = json.RawMessage(replayIDPrefix + strconv.Itoa(n) + `"`)
	return m.Append(nil)
}

// changeHub begins the turn of another hub: it gives what is to be asked again, and what is lost. What an earlier hub
// asked is not waited for any more; cancelled says so to the client.
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

// openRequests counts the requests that a move waits for.
func (t *conversation) openRequests() (n int) {
	for _, f := range t.pending {
		if f.method != mcp.MethodListen {
			n++
		}
	}
	return n
}
