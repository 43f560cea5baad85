package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A State is how a hub is.
type State struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	// Memory is what the hub's process has resident, in bytes; 0 where the system does not say.
	Memory  int64    `json:"memory"`
	Clients []Client `json:"clients"`
	Servers []Server `json:"servers"`
	// Models are those by which tools are found, beside words.
	Models gateway.ModelStatus `json:"models,omitzero"`
}

// A Client is one that the hub serves.
type Client struct {
	// PID is the process of the client's own "serve": the hub itself or a shim.
	PID int `json:"pid"`
	// Host is the program that started it; empty where that is not known.
	Host string `json:"host,omitempty"`
	// Door is "stdio" or "http".
	Door   string    `json:"door"`
	Dir    string    `json:"dir"`
	Since  time.Time `json:"since"`
	Memory int64     `json:"memory"`
}

// A Server is one that the hub runs, or would.
type Server struct {
	drawbridge.ServerStatus
	// Memory is what the server's processes and all they started have resident, in bytes.
	Memory int64 `json:"memory"`
	// Tokens is about what the definitions of its cards cost a model that is given all of them.
	Tokens int `json:"tokens"`
	// Clients is how many clients have it on their deck.
	Clients int `json:"clients"`
}

// ReloadReport says what reading the configuration again came to, for all clients together.
type ReloadReport struct {
	gateway.Changes
	// Errors say what was wrong; what it concerns stays as it was.
	Errors []string `json:"errors,omitempty"`
	// MovedClients is how many clients have another configuration than those they shared one with.
	MovedClients int `json:"moved,omitempty"`
	// Listed are the servers that were listed anew, Away those that were to be and are not connected: they are listed
	// when they start.
	Listed []drawbridge.ServerID `json:"listed,omitempty"`
	Away   []drawbridge.ServerID `json:"away,omitempty"`
}

// ReadState asks the hub of the store that o names how it is. The error is ErrNoHub where there is no hub.
func ReadState(o Options) (State, error) {
	var s State
	err := requestLine(o, o.newHello(wantState), connectTimeout,
		func(text []byte) error { return json.Unmarshal(text, &s) })
	return s, err
}

// Reload has the hub read the configuration again. The error is ErrNoHub where there is no hub.
func Reload(o Options) (ReloadReport, error) {
	return requestReload(o, o.newHello(wantReload), connectTimeout)
}

// Relist is Reload that has the connected servers listed anew before, those named or all where none is: what a person
// decided about what they say now counts then.
func Relist(o Options, servers ...drawbridge.ServerID) (ReloadReport, error) {
	said := o.newHello(wantReload)
	said.Relist, said.Servers = true, servers
	return requestReload(o, said, relistTime+connectTimeout)
}

func requestReload(o Options, said hello, limit time.Duration) (r ReloadReport, err error) {
	err = requestLine(o, said, limit, func(text []byte) error { return json.Unmarshal(text, &r) })
	return r, err
}

// relistTime is how long servers have to list everything anew. What comes later counts when it comes.
const relistTime = 30 * time.Second

// Logs gives the last lines that a server wrote to standard error, and with follow each new one until ctx ends. The
// error is ErrNoHub where there is no hub, and a *drawbridge.Fault NotFound where it has no such server.
func Logs(ctx context.Context, o Options, id drawbridge.ServerID, follow bool, each func(line string) error) error {
	said := o.newHello(wantLogs)
	said.Server, said.Follow = string(id), follow
	return requestLines(ctx, o, said, func(text []byte) error {
		line, _ := rawjson.DecodeString(text)
		return each(line)
	})
}

// ErrNoHub is for a store that no hub runs on.
var ErrNoHub = errNoHub

// errAnswered ends what waits for one line.
var errAnswered = errors.New("there is the answer")

// requestLine takes one line of answer. A hub that ends before it gives one is none.
func requestLine(o Options, said hello, limit time.Duration, take func([]byte) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
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

// requestLines takes the lines of an answer until there are no more.
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

// sendState answers with how everything is.
func (h *hub) sendState(l *lineConn) error {
	if err := l.sendWelcome(os.Getpid(), nil); err != nil {
		return err
	}
	return l.writeJSON(h.state())
}

func (h *hub) state() State {
	h.mu.Lock()
	tenants, guests := slices.Clone(h.gateways), slices.Clone(h.clients)
	h.mu.Unlock()
	tree := readProcessTree()
	s := State{PID: os.Getpid(), Since: h.since, Memory: tree.residentBytes(os.Getpid()), Clients: []Client{},
		Servers: []Server{}, Models: h.shared.ModelStatus()}
	count := map[*sharedGateway]int{}
	for _, g := range guests {
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
	for _, t := range tenants {
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

// addServer adds a server, or what it is to more clients.
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

// sendLogs answers with what a server writes.
func (h *hub) sendLogs(ctx context.Context, said hello, l *lineConn) error {
	tenants := h.currentGateways()
	id := drawbridge.ServerID(said.Server)
	i := slices.IndexFunc(tenants, func(t *sharedGateway) bool {
		row, ok := t.gateway.Config().Lookup(id)
		return ok && row.Phase == drawbridge.Idle
	})
	if i < 0 {
		err := &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: fmt.Sprintf("the hub runs no server %q", id),
			Next: "drawbridge ps",
		}
		return l.sendWelcome(0, err)
	}
	if err := l.sendWelcome(os.Getpid(), nil); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if said.Follow {
		h.serving.Go(func() {
			defer cancel()
			_, _ = l.in.Next() // whoever follows says nothing more: this ends with it
		})
	}
	err := tenants[i].gateway.Stderr(ctx, id, said.Follow,
		func(text string) error { return l.writeLine(rawjson.Quote(text)) })
	_ = l.conn.Close()
	return err
}

// sendReload answers with what changed. Who may still come in is looked at after that: issuers may have to be asked,
// which takes time, and says nothing to whoever waits for the answer.
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

// relist has servers listed anew for every tenant. It comes before a reload: that looks again at what is held of the
// last listings, and what a person decided is about newer ones. Nobody who comes in meanwhile waits for it.
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

// currentGateways gives the tenants that there are now.
func (h *hub) currentGateways() []*sharedGateway {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.gateways)
}

// recheckCallers has all doors look at who may still come in.
func (h *hub) recheckCallers(ctx context.Context) {
	for _, t := range h.currentGateways() {
		t.gateway.RecheckCallers(ctx)
	}
}

// reloadAll has every tenant take over what changed for its guests. Those of them who have another configuration from
// now on than the others move to a tenant of that. What was done before is in all. The error is ctx's: then what was
// read tells nobody anything.
func (h *hub) reloadAll(ctx context.Context, all ReloadReport) (ReloadReport, error) {
	h.tenantMu.Lock()
	defer h.tenantMu.Unlock()
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
	guests := slices.DeleteFunc(slices.Clone(h.clients), func(g *attachedClient) bool { return g.shared != t })
	h.mu.Unlock()
	keys := make(map[*attachedClient]string, len(guests))
	for _, g := range guests {
		key, err := h.fingerprint(ctx, g)
		if err != nil {
			all.Errors = append(all.Errors, err.Error())
			key = t.fingerprint
		}
		keys[g] = key
	}
	stay := configOwner(guests)
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
	for _, g := range guests {
		if keys[g] != t.fingerprint && g.shim != nil {
			g.askToMove()
			all.MovedClients++
		}
	}
}

// fingerprint says what a guest's configuration comes to now.
func (h *hub) fingerprint(ctx context.Context, g *attachedClient) (string, error) {
	read, err := h.shared.LoadConfig(ctx, g.config)
	if err != nil {
		return "", err
	}
	return read.Fingerprint()
}

// configOwner is the guest whose configuration a tenant follows: one who cannot move, if there is one, else the first.
func configOwner(guests []*attachedClient) *attachedClient {
	i := slices.IndexFunc(guests, func(g *attachedClient) bool { return g.shim == nil })
	switch {
	case i >= 0:
		return guests[i]
	case len(guests) > 0:
		return slices.MinFunc(guests, func(a, b *attachedClient) int {
			return cmp.Compare(a.since.UnixNano(),
				b.since.UnixNano())
		})
	}
	return nil
}
