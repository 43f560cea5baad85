package mcptest

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A talkSession is the state of one client of a talker: a stateful session, or, in the stateless generation, a stdio
// connection.
type talkSession struct {
	t *talker
	// ctx ends with the session. All turns then end. stop ends ctx; it is called under mu.
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup
	me   *hearer

	mu sync.Mutex
	// caps are the client's capabilities in initialize. level is the level of the last logging/setLevel.
	caps  json.RawMessage
	level string
	// asked contains the questions that wait for an answer. open contains the turns that can be cancelled. The keys are
	// the bytes of the IDs.
	asked   map[string]chan mcp.Message
	lastAsk int
	open    map[string]context.CancelFunc
}

// session returns a new session. say sends messages that belong to no request.
func (t *talker) session(say func(mcp.Message)) *talkSession {
	s := &talkSession{
		t: t, asked: map[string]chan mcp.Message{}, open: map[string]context.CancelFunc{},
		me: &hearer{uris: map[string]bool{}, say: say},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// take handles one message. A request that may wait runs in a goroutine of the session. done, which may be nil, is
// called after the response was sent.
func (s *talkSession) take(m mcp.Message, say func(mcp.Message), done func()) {
	if done == nil {
		done = func() {}
	}
	switch {
	case m.IsResponse():
		s.answered(m)
	case m.Method == mcp.NoteCancelled:
		s.cancel(string(rawjson.Get(m.Params, "requestId")))
	case !m.IsRequest():
	case s.simple(m, say):
	case s.begin(m, say, done):
		return
	}
	done()
}

// begin starts a turn. It returns false if the session has ended.
func (s *talkSession) begin(m mcp.Message, say func(mcp.Message), done func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.open[string(m.ID)] = cancel
	c := &talkerTurn{t: s.t, ctx: ctx, params: m.Params, say: say, asker: s, level: s.level}
	s.work.Go(func() {
		defer done()
		defer s.cancel(string(m.ID))
		if reply, ok := s.t.take(c, m); ok {
			say(reply)
		}
	})
	return true
}

// simple handles initialize, ping, logging/setLevel and the subscription methods of the stateful generation. It returns
// false for other requests.
func (s *talkSession) simple(m mcp.Message, say func(mcp.Message)) bool {
	result := "{}"
	switch m.Method {
	case mcp.MethodInitialize:
		s.mu.Lock()
		s.caps = rawjson.Get(m.Params, "capabilities")
		s.mu.Unlock()
		s.t.hear(s.me)
		result = initializeResult(m, `{"tools":{"listChanged":true},"prompts":{"listChanged":true},`+
			`"resources":{"listChanged":true,"subscribe":true},"logging":{},"completions":{}}`)
	case mcp.MethodPing:
	case mcp.MethodSetLevel:
		s.mu.Lock()
		s.level = rawjson.GetString(m.Params, "level")
		s.mu.Unlock()
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		s.t.watch(s.me, rawjson.GetString(m.Params, "uri"), m.Method == mcp.MethodSubscribe)
	default:
		return false
	}
	say(mcp.Message{ID: m.ID, Result: json.RawMessage(result)})
	return true
}

// end ends the session. No turn begins after it.
func (s *talkSession) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

// close ends the session and waits for its turns.
func (s *talkSession) close() {
	s.end()
	s.t.mu.Lock()
	delete(s.t.hearers, s.me)
	s.t.mu.Unlock()
	s.work.Wait()
}

func (s *talkSession) cancel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.open[id]; cancel != nil {
		cancel()
		delete(s.open, id)
	}
}

// send sends the client a question, and returns its ID and the channel for the answer.
func (s *talkSession) send(c *talkerTurn, method string, params json.RawMessage) (id string, answer chan mcp.Message) {
	s.mu.Lock()
	s.lastAsk++
	id, answer = strconv.Itoa(s.lastAsk), make(chan mcp.Message, 1)
	s.asked[id] = answer
	s.mu.Unlock()
	c.say(mcp.Message{ID: json.RawMessage(id), Method: method, Params: params})
	return id, answer
}

func (s *talkSession) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, id)
}

func (s *talkSession) answered(m mcp.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.asked[string(m.ID)]; answer != nil {
		answer <- m
		delete(s.asked, string(m.ID))
	}
}

// declared returns the capabilities that initialize declared.
func (s *talkSession) declared() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caps
}

func (s *talkSession) fresh(int) bool { return true }

// ask sends all questions of a round and waits for their answers. An error response of the client is the answer
// {"error":OBJECT}.
func (s *talkSession) ask(c *talkerTurn, kinds []string) ([]json.RawMessage, error) {
	var waiting []chan mcp.Message
	for _, kind := range kinds {
		method, params := c.question(kind)
		id, answer := s.send(c, method, params)
		defer s.forget(id)
		waiting = append(waiting, answer)
	}
	var answers []json.RawMessage
	for _, answer := range waiting {
		select {
		case m := <-answer:
			if c.ctx.Err() != nil {
				return nil, errSilent // the turn was cancelled before the answer arrived
			}
			if m.Error != nil {
				m.Result = json.RawMessage(`{"error":` + string(m.Error) + `}`)
			}
			answers = append(answers, m.Result)
		case <-c.ctx.Done():
			return nil, errSilent
		}
	}
	return answers, nil
}

// A statelessClient is the client of one stateless request. The requestState contains its earlier answers.
type statelessClient struct {
	caps, given json.RawMessage
	// known contains the answers of each answered round. round is the number of rounds for which the turn has called
	// ask.
	known [][]json.RawMessage
	round int
	// before is the number of rounds that were answered before this request.
	before int
}

// stateMark is the beginning of every requestState of a talker. It is opaque to clients, which must send it back byte
// for byte.
const stateMark = `é "\ `

func newStatelessClient(params json.RawMessage) (*statelessClient, error) {
	r := &statelessClient{
		caps:  rawjson.Get(params, "_meta", mcp.MetaClientCapabilities),
		given: rawjson.Get(params, "inputResponses"),
	}
	state := rawjson.Get(params, "requestState")
	if state == nil {
		return r, nil
	}
	text, _ := rawjson.DecodeString(state)
	rounds, mine := strings.CutPrefix(text, stateMark)
	if strings.HasPrefix(text, "round ") {
		return r, nil
	}
	if err := json.Unmarshal([]byte(rounds), &r.known); !mine || err != nil {
		return nil, refuseTurn(mcp.CodeInvalidParams, "requestState is not mine: %s", state)
	}
	r.before = len(r.known)
	return r, nil
}

func (r *statelessClient) fresh(round int) bool { return round >= r.before }

func (r *statelessClient) declared() json.RawMessage { return r.caps }

// ask returns the answers to a round if the request contains them. Otherwise it returns an inputRequiredResult with the
// questions.
func (r *statelessClient) ask(c *talkerTurn, kinds []string) ([]json.RawMessage, error) {
	defer func() { r.round++ }()
	if r.round < len(r.known) {
		return r.known[r.round], nil
	}
	var answers []json.RawMessage
	questions := ""
	for i, kind := range kinds {
		key := "q" + strconv.Itoa(r.round+1) + "." + strconv.Itoa(i+1)
		answer := rawjson.Get(r.given, key)
		switch {
		case rawjson.Get(r.caps, capabilityOf(kind)...) == nil:
			answer = json.RawMessage(`{"undeclared":"` + kind + `"}`)
		case answer == nil:
			method, params := c.question(kind)
			if params == nil {
				params = json.RawMessage("{}")
			}
			questions += `,"` + key + `":{"method":"` + method + `","params":` + string(params) + `}`
		}
		answers = append(answers, answer)
	}
	if questions == "" {
		r.known = append(r.known, answers)
		return answers, nil
	}
	known := make([]string, len(r.known))
	for i, round := range r.known {
		known[i] = jsonArray(round)
	}
	state := stateMark + "[" + strings.Join(known, ",") + "]"
	return nil, inputRequiredResult(`{"resultType":"input_required","requestState":` + string(rawjson.Quote(state)) +
		`,"inputRequests":{` + questions[1:] + `},` + modernInfo + `}`)
}
