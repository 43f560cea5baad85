package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/server"
)

// A State describes a running hub: its process, clients and servers.
type State struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	// Memory is the resident memory of the hub's process in bytes; 0 if unknown.
	Memory  int64    `json:"memory"`
	Clients []Client `json:"clients"`
	Servers []Server `json:"servers"`
	// Callers are the numbers of sessions and calls of each client, identified by principal and declared name. They
	// include the clients of HTTP endpoints.
	Callers []server.ClientActivity `json:"callers"`
	// Models is the status of the models that the search for tools uses in addition to word search.
	Models gateway.ModelStatus `json:"models,omitzero"`
}

// A Client is a client that the hub serves.
type Client struct {
	// PID is the id of the client's "drawbridge serve" process, which is the hub itself or a shim.
	PID int `json:"pid"`
	// Host is the name of the program that started this process; empty if unknown.
	Host string `json:"host,omitempty"`
	// Door is the transport, "stdio" or "http".
	Door   string    `json:"door"`
	Dir    string    `json:"dir"`
	Since  time.Time `json:"since"`
	Memory int64     `json:"memory"`
}

// A Server is a server that the hub runs or can start.
type Server struct {
	drawbridge.ServerStatus
	// Memory is the resident memory of the server's processes and their descendants, in bytes.
	Memory int64 `json:"memory"`
	// Tokens is an estimate of the number of tokens of all definitions of the server's tools.
	Tokens int `json:"tokens"`
	// Clients is the number of clients that have the server in their configuration.
	Clients int `json:"clients"`
}

// A ReloadReport is the result of a reload for all clients together.
type ReloadReport struct {
	gateway.Changes
	// Errors are the errors of the reload. If there is an error in the configuration of a gateway, that gateway is not
	// changed.
	Errors []string `json:"errors,omitempty"`
	// MovedClients is the number of clients that must attach again. The configuration of such a client now differs from
	// the configuration of the other clients of its gateway.
	MovedClients int `json:"moved,omitempty"`
	// Listed are the servers that were listed again. Away are the servers that could not be listed because they are not
	// connected; they are listed when they start.
	Listed []drawbridge.ServerID `json:"listed,omitempty"`
	Away   []drawbridge.ServerID `json:"away,omitempty"`
}

// ReadState returns the state of the hub of the store in o. The error is ErrNoHub if no hub runs.
func ReadState(o Options) (State, error) {
	var s State
	err := requestLine(background(), o, o.newHello(wantState), connectTimeout,
		func(text []byte) error { return json.Unmarshal(text, &s) })
	return s, err
}

// Reload asks the hub to read the configurations of all clients again. The error is ErrNoHub if no hub runs.
func Reload(o Options) (ReloadReport, error) {
	return requestReload(o, o.newHello(wantReload), connectTimeout)
}

// Relist asks the hub to list the named servers again, or all servers if none is named, and then to reload. It lists
// only connected servers. A person's decision about a changed definition is then applied to the current definition.
func Relist(o Options, servers ...drawbridge.ServerID) (ReloadReport, error) {
	said := o.newHello(wantReload)
	said.Relist, said.Servers = true, servers
	return requestReload(o, said, relistTime+connectTimeout)
}

func requestReload(o Options, said hello, limit time.Duration) (r ReloadReport, err error) {
	err = requestLine(background(), o, said, limit, func(text []byte) error { return json.Unmarshal(text, &r) })
	return r, err
}

// relistTime is the time limit for listing the servers again. A listing that arrives later is used when it arrives, but
// is not in the report.
const relistTime = 30 * time.Second

// Logs calls each with the last lines that a server wrote to standard error. If follow is set, it also calls each with
// every new line until ctx ends. The error is ErrNoHub if no hub runs, or a *drawbridge.Fault with the code NotFound if
// the hub does not run that server.
func Logs(ctx context.Context, o Options, id drawbridge.ServerID, follow bool, each func(line string) error) error {
	said := o.newHello(wantLogs)
	said.Server, said.Follow = string(id), follow
	return requestLines(ctx, o, said, func(text []byte) error {
		line, _ := rawjson.DecodeString(text)
		return each(line)
	})
}

// ErrNoHub reports that no hub of the store runs.
var ErrNoHub = errNoHub

// background returns the context for a command that sends one request to the hub and waits. A time limit ends the
// request, and an interrupt ends the whole process.
func background() context.Context { return context.Background() }

// errAnswered is the error that take returns to make requestLines stop after a line.
var errAnswered = errors.New("the answer is complete")

// requestLine sends a hello to the hub and calls take with the one line of the response. The error is errNoHub if no
// hub runs, or if the hub ends before it responds.
func requestLine(ctx context.Context, o Options, said hello, limit time.Duration, take func([]byte) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := requestLines(ctx, o, said, func(text []byte) error { return cmp.Or(take(text), errAnswered) })
	switch {
	case errors.Is(err, errAnswered):
		return nil
	case err == nil && ctx.Err() != nil:
		return unreachableFault(errors.New("it does not answer"), "drawbridge ps")
	case err == nil:
		return errNoHub
	}
	return err
}

// requestLines sends a hello to the hub and calls take with each line of the response. It ends when take returns an
// error, which it returns, or when the connection ends.
func requestLines(ctx context.Context, o Options, said hello, take func([]byte) error) error {
	s, err := newHubFinder(o)
	if err != nil {
		return err
	}
	if !s.shareable {
		return errNoHub
	}
	l, err := s.connect(ctx, said)
	if err != nil {
		return err
	}
	defer l.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = l.conn.Close() })()
	for {
		text, err := l.in.Next()
		if err != nil {
			return nil
		}
		if err := take(text); err != nil {
			return err
		}
	}
}

// sendState handles the verb state.
func (h *hub) sendState(l *lineConn) error {
	if err := l.sendWelcome(os.Getpid(), nil); err != nil {
		return err
	}
	return l.writeJSON(h.state())
}

func (h *hub) state() State {
	h.mu.Lock()
	gateways, clients := slices.Clone(h.gateways), slices.Clone(h.clients)
	h.mu.Unlock()
	tree := readProcessTree()
	s := State{PID: os.Getpid(), Since: h.since, Memory: tree.residentBytes(os.Getpid()), Clients: []Client{},
		Servers: []Server{}, Callers: []server.ClientActivity{}, Models: h.shared.ModelStatus()}
	count := map[*sharedGateway]int{}
	for _, g := range clients {
		count[g.shared]++
		door := "stdio"
		if g.hello.Want == wantHTTP {
			door = "http"
		}
		s.Clients = append(s.Clients, Client{
			PID: g.hello.PID, Host: g.hello.Host, Door: door, Dir: g.hello.Dir, Since: g.since,
			Memory: tree.residentBytes(g.hello.PID),
		})
	}
	for _, t := range gateways {
		s.Callers = server.MergeActivity(s.Callers, t.gateway.ClientActivity())
		tokens := tokensOf(t.gateway)
		for _, status := range t.gateway.Status() {
			one := Server{ServerStatus: status, Tokens: tokens[status.Server], Clients: count[t]}
			for _, pid := range status.PIDs {
				one.Memory += tree.treeResidentBytes(pid)
			}
			s.addServer(one)
		}
	}
	slices.SortFunc(s.Clients, func(a, b Client) int { return a.Since.Compare(b.Since) })
	return s
}

// addServer adds a server to the list. If the list already has the same server, only its number of clients is
// increased.
func (s *State) addServer(one Server) {
	i := slices.IndexFunc(s.Servers, func(known Server) bool {
		return known.Server == one.Server && known.Source == one.Source && slices.Equal(known.PIDs, one.PIDs)
	})
	if i < 0 {
		s.Servers = append(s.Servers, one)
		return
	}
	s.Servers[i].Clients += one.Clients
}

func tokensOf(g *gateway.Gateway) map[drawbridge.ServerID]int {
	size := map[drawbridge.ServerID]int{}
	for _, spec := range g.Deck().Cards(g.Owner()) {
		size[spec.Server] += deck.EstimateTokens(spec.Definition)
	}
	return size
}

// welcomeWith returns the gateways that have a server of this name, and sends the welcome. If no gateway has the
// server, it sends a refusal and returns no gateways.
func (h *hub) welcomeWith(id drawbridge.ServerID, l *lineConn) ([]*sharedGateway, error) {
	gateways := h.gatewaysWith(id)
	if len(gateways) == 0 {
		return nil, l.sendWelcome(0, notRunFault(id))
	}
	return gateways, l.sendWelcome(os.Getpid(), nil)
}

// sendLogs handles the verb logs: it sends the lines of a server's standard error.
func (h *hub) sendLogs(ctx context.Context, said hello, l *lineConn) error {
	id := drawbridge.ServerID(said.Server)
	gateways, err := h.welcomeWith(id, l)
	if err != nil || len(gateways) == 0 {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if said.Follow {
		h.serving.Go(func() {
			defer cancel()
			_, _ = l.in.Next() // returns when the peer closes the connection; it sends nothing more
		})
	}
	err = gateways[0].gateway.Stderr(ctx, id, said.Follow,
		func(text string) error { return l.writeLine(rawjson.Quote(text)) })
	_ = l.conn.Close()
	return err
}

// sendReload handles the verb reload. After the response, it verifies the callers of the HTTP endpoints again. This is
// done last, because the requests to issuers may take long and do not change the response.
func (h *hub) sendReload(ctx context.Context, said hello, l *lineConn) error {
	if err := l.sendWelcome(os.Getpid(), nil); err != nil {
		return err
	}
	var did ReloadReport
	if said.Relist {
		h.relist(ctx, said.Servers, &did)
	}
	did, err := h.reloadAll(ctx, did)
	if err != nil {
		return err
	}
	err = l.writeJSON(did)
	h.recheckCallers(ctx)
	return err
}

// relist lists the named servers of all gateways again and adds the results to all. It runs before the reload. The
// reload vets the listings again by a person's decision, which may refer to a newer listing. Clients can attach during
// relist.
func (h *hub) relist(ctx context.Context, servers []drawbridge.ServerID, all *ReloadReport) {
	ctx, cancel := context.WithTimeout(ctx, relistTime)
	defer cancel()
	for _, t := range h.currentGateways() {
		listed, away, err := t.gateway.Relist(ctx, servers...)
		if err != nil {
			all.Errors = append(all.Errors, err.Error())
		}
		all.Listed, all.Away = append(all.Listed, listed...), append(all.Away, away...)
	}
}

// currentGateways returns a copy of the list of gateways.
func (h *hub) currentGateways() []*sharedGateway {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.gateways)
}

// recheckCallers verifies the callers of all HTTP endpoints again.
func (h *hub) recheckCallers(ctx context.Context) {
	for _, t := range h.currentGateways() {
		t.gateway.RecheckCallers(ctx)
	}
}

// reloadAll reloads every gateway. A client whose configuration now differs from the configuration of its gateway is
// asked to attach again. The returned report is all with the results added. If ctx has ended, the report is incomplete
// and the error is the error of ctx.
func (h *hub) reloadAll(ctx context.Context, all ReloadReport) (ReloadReport, error) {
	h.attachMu.Lock()
	defer h.attachMu.Unlock()
	for _, t := range h.currentGateways() {
		h.reloadGateway(ctx, t, &all)
	}
	for _, ids := range []*[]drawbridge.ServerID{&all.Added, &all.Removed, &all.Changed, &all.Listed, &all.Away} {
		slices.Sort(*ids)
		if *ids = slices.Compact(*ids); *ids == nil {
			*ids = []drawbridge.ServerID{}
		}
	}
	slices.Sort(all.Errors)
	all.Errors = slices.Compact(all.Errors)
	return all, ctx.Err()
}

func (h *hub) reloadGateway(ctx context.Context, t *sharedGateway, all *ReloadReport) {
	h.mu.Lock()
	clients := slices.DeleteFunc(slices.Clone(h.clients), func(g *attachedClient) bool { return g.shared != t })
	h.mu.Unlock()
	keys := make(map[*attachedClient]string, len(clients))
	for _, g := range clients {
		key, err := h.fingerprint(ctx, g)
		if err != nil {
			all.Errors = append(all.Errors, err.Error())
			key = t.fingerprint
		}
		keys[g] = key
	}
	stay := configOwner(clients)
	if stay != nil {
		t.gateway.SetConfigSource(stay.config)
		h.mu.Lock()
		t.fingerprint = keys[stay]
		h.mu.Unlock()
	}
	changes, err := t.gateway.Reload(ctx)
	if err != nil {
		all.Errors = append(all.Errors, err.Error())
	}
	all.Added = append(all.Added, changes.Added...)
	all.Removed = append(all.Removed, changes.Removed...)
	all.Changed = append(all.Changed, changes.Changed...)
	for _, g := range clients {
		// A client that was asked before and has not attached again yet is not asked or counted again.
		if keys[g] != t.fingerprint && g.shim != nil && !g.moved.Load() {
			g.askToMove()
			all.MovedClients++
		}
	}
}

// fingerprint reads a client's configuration again and returns its fingerprint.
func (h *hub) fingerprint(ctx context.Context, g *attachedClient) (string, error) {
	read, err := h.shared.LoadConfig(ctx, g.config)
	if err != nil {
		return "", err
	}
	return read.Fingerprint()
}

// configOwner returns the client whose configuration a gateway uses. It is the hub's own client, which cannot attach
// again, or else the oldest client; nil if there are no clients.
func configOwner(clients []*attachedClient) *attachedClient {
	i := slices.IndexFunc(clients, func(g *attachedClient) bool { return g.shim == nil })
	switch {
	case i >= 0:
		return clients[i]
	case len(clients) > 0:
		return slices.MinFunc(clients, func(a, b *attachedClient) int {
			return cmp.Compare(a.since.UnixNano(),
				b.since.UnixNano())
		})
	}
	return nil
}
