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
	"github.com/drawbridge-mcp/drawbridge/server"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A flight is a request of the client's that is not answered yet.
type flight struct {
	id     json.RawMessage
	method string
	// line is what was sent, for a request that may be sent again; nil for one that may not.
	line []byte
	// name is the tool of a call, modern says that its caller is stateless.
	name   string
	modern bool
	// batch numbers the batch that the request came in; 0 for none. at is the request's place among all.
	batch, at int
}

// again says whether a request may be sent twice: what only reads may, and what sets something to a value.
func again(method string) bool {
	switch method {
	case wire.MethodInitialize, wire.MethodPing, wire.MethodDiscover, wire.MethodListen, wire.MethodSetLevel,
		wire.MethodToolsList, wire.MethodPromptsList, wire.MethodPromptsGet, wire.MethodComplete,
		wire.MethodResourcesList, wire.MethodTemplatesList, wire.MethodResourcesRead, wire.MethodSubscribe, wire.MethodUnsubscribe,
		wire.MethodTasksGet, wire.MethodTasksList, wire.MethodTasksResult,
		wire.MethodSkillsList, wire.MethodSkillsGet, wire.MethodDirectoryRead:
		return true
	}
	return false
}

// newFlight notes a request, which came on that line.
func newFlight(m wire.Message, line []byte) flight {
	f := flight{id: m.ID, method: m.Method}
	switch {
	case again(m.Method):
		f.line = line
	case m.Method == wire.MethodToolsCall:
		f.name = wire.GetText(m.Params, "name")
		f.modern = wire.VersionOf(m.Params) != ""
	default:
		f.modern = wire.VersionOf(m.Params) != ""
	}
	return f
}

// lost is the answer to a request whose hub died with it, as the surface would have given it: nobody knows whether it took
// effect.
func (f flight) lost() wire.Message {
	const cause = "the hub that carried the request has ended, and it may have taken effect"
	data := fmt.Appendf(nil, `{"code":%q,"ambiguous":true}`, drawbridge.Transient)
	if f.method != wire.MethodToolsCall {
		return wire.Message{ID: f.id, Error: wire.ErrorObject(wire.CodeInternal, f.method+": "+cause, data)}
	}
	text := wire.Quote("call " + f.name + ": " + cause + " (look before you call again)")
	result := append([]byte(`{"content":[{"type":"text","text":`), text...)
	result = append(append(result, `}],"isError":true,"_meta":{"`+server.FaultMeta+`":`...), data...)
	result = append(result, '}')
	if f.modern {
		result = append(result, `,"resultType":"complete"`...)
	}
	return wire.Message{ID: f.id, Result: append(result, '}')}
}

// answers gives the lines that answer these flights, those of a batch in one.
func answers(lost []flight) (lines [][]byte) {
	batches := map[int]int{}
	for _, f := range lost {
		answer := f.lost().Append(nil)
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

// A talk is what must be known of a conversation to go on with it at another hub. It is used under one lock.
type talk struct {
	// What a stateful client said that counts for its session.
	initialize, initialized, level []byte
	subscribed                     map[string][]byte
	flights                        map[string]flight
	batches, count                 int
	// turn counts hubs; asked are the hub's own requests that the client has not answered, by the id that the client knows.
	turn  int
	asked map[string]json.RawMessage
	// unsure are lines that the client may have heard or not; cut says that it may have heard a part of one.
	unsure []byte
	cut    bool
	// again counts what was said again and is not answered, settled is closed when nothing is left of that.
	again   int
	settled chan struct{}
}

func newTalk() *talk {
	return &talk{subscribed: map[string][]byte{}, flights: map[string]flight{}, asked: map[string]json.RawMessage{}}
}

// said takes note of a line of the client's. It gives the line as the hub is to see it; nil for one that is for nobody.
func (t *talk) said(line []byte) []byte {
	if wire.IsBatch(line) {
		t.batches++
		for value := range wire.Elements(line) {
			if m, err := wire.Parse(value); err == nil && m.IsRequest() {
				f := newFlight(m, value)
				f.batch, f.line = t.batches, nil
				t.add(f)
			}
		}
		return line
	}
	m, err := wire.Parse(line)
	switch {
	case err != nil:
		return t.saidTogether(line)
	case m.IsRequest():
		t.add(newFlight(m, line))
		t.keep(m, line)
	case m.IsResponse():
		return t.replied(m, line)
	case m.Method == wire.NoteInitialized:
		t.initialized = line
	case m.Method == wire.NoteCancelled:
		delete(t.flights, string(wire.Get(m.Params, "requestId"))) // it may never be answered
	}
	return line
}

// saidTogether is said for a line that is no message, about which the hub says what is wrong, or several: these are seen in the wild.
func (t *talk) saidTogether(line []byte) []byte {
	values := valuesOf(line)
	if len(values) < 2 {
		return line
	}
	var heard [][]byte
	for _, value := range values {
		if value = t.said(value); value != nil {
			heard = append(heard, value)
		}
	}
	if heard == nil {
		return nil
	}
	return bytes.Join(heard, []byte(" "))
}

// valuesOf gives the messages of a line, also those of a batch, up to what is no JSON.
func valuesOf(line []byte) (values [][]byte) {
	if !wire.IsBatch(line) {
		values, _ = wire.SplitValues(line)
		return values
	}
	for value := range wire.Elements(line) {
		values = append(values, value)
	}
	return values
}

func (t *talk) add(f flight) {
	t.count++
	f.at = t.count
	t.flights[string(f.id)] = f
}

// keep keeps what a session is to go on with.
func (t *talk) keep(m wire.Message, line []byte) {
	switch m.Method {
	case wire.MethodInitialize:
		t.initialize = line
	case wire.MethodSetLevel:
		t.level = line
	case wire.MethodSubscribe:
		t.subscribed[wire.GetText(m.Params, "uri")] = line
	case wire.MethodUnsubscribe:
		delete(t.subscribed, wire.GetText(m.Params, "uri"))
	}
}

// replied passes an answer on to the hub that asked, and to no other.
func (t *talk) replied(m wire.Message, line []byte) []byte {
	delete(t.asked, string(m.ID))
	if t.turn == 0 {
		return line
	}
	id, _ := wire.Text(m.ID)
	own, ok := strings.CutPrefix(id, t.prefix())
	if !ok {
		return nil
	}
	m.ID = json.RawMessage(own)
	return m.Append(nil)
}

// prefix begins the ids by which the client knows this hub's requests: an earlier one may have used the same.
func (t *talk) prefix() string { return "hub" + strconv.Itoa(t.turn) + "/" }

// heard takes note of a line of the hub's. It gives the line as the client is to see it; nil for one that is not for it, or that a hub
// which died left unfinished.
func (t *talk) heard(line []byte) []byte {
	if wire.IsBatch(line) {
		if wire.Valid(line) != nil {
			return nil
		}
		for value := range wire.Elements(line) {
			if m, err := wire.Parse(value); err == nil && m.IsResponse() {
				delete(t.flights, string(m.ID))
			}
		}
		return line
	}
	m, err := wire.Parse(line)
	switch {
	case err != nil:
		return nil
	case m.IsResponse():
		if isReplay(m.ID) {
			t.replayed()
			return nil
		}
		delete(t.flights, string(m.ID))
	case m.IsRequest():
		own := m.ID
		m.ID = t.known(own)
		if t.asked[string(m.ID)] = own; t.turn > 0 {
			return m.Append(nil)
		}
	case m.Method == wire.NoteCancelled:
		id := t.known(wire.Get(m.Params, "requestId"))
		delete(t.asked, string(id))
		if t.turn > 0 {
			m.Params = wire.Apply(m.Params, wire.Put(id, "requestId"))
			return m.Append(nil)
		}
	}
	return line
}

// known is the id by which the client knows a request of the hub's.
func (t *talk) known(own json.RawMessage) json.RawMessage {
	if t.turn == 0 {
		return own
	}
	return wire.Quote(t.prefix() + string(own))
}

// next is the turn that begins with the next hub.
func (t *talk) next() int {
	if t.count > 0 { // there was a hub before
		return t.turn + 1
	}
	return t.turn
}

// The ids of what a shim says again for its client begin with this. No client's do, unless it wants to hear nothing.
const replayPrefix = `"drawbridge/again/`

func isReplay(id json.RawMessage) bool { return bytes.HasPrefix(id, []byte(replayPrefix)) }

// greeting is how the session begins at another hub; nil where there is none to go on with.
func (t *talk) greeting() []byte {
	if t.initialize == nil {
		return nil
	}
	m, _ := wire.Parse(t.initialize) // it was parsed before
	if _, open := t.flights[string(m.ID)]; open {
		return nil // it is not answered yet: it is asked again itself
	}
	return renamed(t.initialize, 0)
}

// rest is what follows the greeting. settled is closed when the hub has answered all of it.
func (t *talk) rest() (lines [][]byte, settled <-chan struct{}) {
	said := slices.Collect(maps.Values(t.subscribed))
	if t.level != nil {
		said = append(said, t.level)
	}
	t.again, t.settled = len(said), make(chan struct{})
	if t.again == 0 {
		close(t.settled)
	}
	if t.initialized != nil {
		lines = append(lines, t.initialized)
	}
	for i, line := range said {
		lines = append(lines, renamed(line, 1+i))
	}
	return lines, t.settled
}

// replayed notes the answer to something that was said again.
func (t *talk) replayed() {
	if t.again--; t.again == 0 {
		close(t.settled)
	}
}

// renamed is a request under an id of our own.
func renamed(line []byte, n int) []byte {
	m, _ := wire.Parse(line) // it was parsed before
	m.ID = json.RawMessage(replayPrefix + strconv.Itoa(n) + `"`)
	return m.Append(nil)
}

// moved begins the turn of another hub: it gives what is to be asked again, and what is lost. What an earlier hub asked is
// not waited for any more; cancelled says so to the client.
func (t *talk) moved() (repeat [][]byte, lost []flight, cancelled [][]byte) {
	t.turn = t.next()
	inOrder := slices.SortedFunc(maps.Values(t.flights), func(a, b flight) int { return a.at - b.at })
	for _, f := range inOrder {
		if f.line != nil {
			repeat = append(repeat, f.line)
			continue
		}
		lost = append(lost, f)
		delete(t.flights, string(f.id))
	}
	for id := range t.asked {
		params := fmt.Appendf(nil, `{"requestId":%s,"reason":"the hub that asked has ended"}`, id)
		cancelled = append(cancelled, append(wire.Message{Method: wire.NoteCancelled, Params: params}.Append(nil), '\n'))
	}
	clear(t.asked)
	return repeat, lost, cancelled
}

// busy counts the requests that a move waits for.
func (t *talk) busy() (n int) {
	for _, f := range t.flights {
		if f.method != wire.MethodListen {
			n++
		}
	}
	return n
}
