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
	"github.com/drawbridge-mcp/drawbridge/hub/resident"
	"github.com/drawbridge-mcp/drawbridge/wire"
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
	drawbridge.Status
	// Memory is what the server's processes and all they started have resident, in bytes.
	Memory int64 `json:"memory"`
	// Tokens is about what the definitions of its cards cost a model that is given all of them.
	Tokens int `json:"tokens"`
	// Clients is how many clients have it on their deck.
	Clients int `json:"clients"`
}

// Reloaded says what reading the configuration again came to, for all clients together.
type Reloaded struct {
	gateway.Changes
	// Errors say what was wrong; what it concerns stays as it was.
	Errors []string `json:"errors,omitempty"`
	// Moved is how many clients have another configuration than those they shared one with.
	Moved int `json:"moved,omitempty"`
	// Listed are the servers that were listed anew, Away those that were to be and are not connected: they are listed when they start.
	Listed []drawbridge.ServerID `json:"listed,omitempty"`
	Away   []drawbridge.ServerID `json:"away,omitempty"`
}

// ReadState asks the hub of the store that o names how it is. The error is ErrNone where there is no hub.
func ReadState(o Options) (State, error) {
	var s State
	err := ask(o, o.hello(wantState), reachTime, func(text []byte) error { return json.Unmarshal(text, &s) })
	return s, err
}

// Reload has the hub read the configuration again. The error is ErrNone where there is no hub.
func Reload(o Options) (Reloaded, error) {
	return reload(o, o.hello(wantReload), reachTime)
}

// Relist is Reload that has the connected servers listed anew before, those named or all where none is: what a person decided about
// what they say now counts then.
func Relist(o Options, servers ...drawbridge.ServerID) (Reloaded, error) {
	said := o.hello(wantReload)
	said.Relist, said.Servers = true, servers
	return reload(o, said, relistTime+reachTime)
}

func reload(o Options, said hello, limit time.Duration) (r Reloaded, err error) {
	err = ask(o, said, limit, func(text []byte) error { return json.Unmarshal(text, &r) })
	return r, err
}

// relistTime is how long servers have to list everything anew. What comes later counts when it comes.
const relistTime = 30 * time.Second

// Logs gives the last lines that a server wrote to standard error, and with follow each new one until ctx ends. The error
// is ErrNone where there is no hub, and a *drawbridge.Fault NotFound where it has no such server.
func Logs(ctx context.Context, o Options, id drawbridge.ServerID, follow bool, each func(line string) error) error {
	said := o.hello(wantLogs)
	said.Server, said.Follow = string(id), follow
	return askWith(ctx, o, said, func(text []byte) error {
		line, _ := wire.Text(text)
		return each(line)
	})
}

// ErrNone is for a store that no hub runs on.
var ErrNone = errNone

// errAnswered ends what waits for one line.
var errAnswered = errors.New("there is the answer")

// ask takes one line of answer. A hub that ends before it gives one is none.
func ask(o Options, said hello, limit time.Duration, take func([]byte) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := askWith(ctx, o, said, func(text []byte) error { return cmp.Or(take(text), errAnswered) })
	switch {
	case errors.Is(err, errAnswered):
		return nil
	case err == nil && ctx.Err() != nil:
		return unreached(errors.New("it does not answer"), "drawbridge ps")
	case err == nil:
		return errNone
	}
	return err
}

// askWith takes the lines of an answer until there are no more.
func askWith(ctx context.Context, o Options, said hello, take func([]byte) error) error {
	s, err := newStation(o)
	if err != nil {
		return err
	}
	if !s.found {
		return errNone
	}
	l, err := s.call(ctx, said)
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

// tellState answers with how everything is.
func (h *hub) tellState(l *line) error {
	if err := l.welcome(os.Getpid(), nil); err != nil {
		return err
	}
	return l.tell(h.state())
}

func (h *hub) state() State {
	h.mu.Lock()
	tenants, guests := slices.Clone(h.tenants), slices.Clone(h.guests)
	h.mu.Unlock()
	tree := resident.Processes()
	s := State{PID: os.Getpid(), Since: h.since, Memory: tree.Memory(os.Getpid()), Clients: []Client{}, Servers: []Server{}, Models: h.ground.Models()}
	count := map[*tenant]int{}
	for _, g := range guests {
		count[g.tenant]++
		door := "stdio"
		if g.hello.Want == wantHTTP {
			door = "http"
		}
		s.Clients = append(s.Clients, Client{
			PID: g.hello.PID, Host: g.hello.Host, Door: door, Dir: g.hello.Dir, Since: g.since, Memory: tree.Memory(g.hello.PID),
		})
	}
	for _, t := range tenants {
		tokens := tokensOf(t.g)
		for _, status := range t.g.Status() {
			one := Server{Status: status, Tokens: tokens[status.Server], Clients: count[t]}
			for _, pid := range status.PIDs {
				one.Memory += tree.Whole(pid)
			}
			s.add(one)
		}
	}
	slices.SortFunc(s.Clients, func(a, b Client) int { return a.Since.Compare(b.Since) })
	return s
}

// add adds a server, or what it is to more clients.
func (s *State) add(one Server) {
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
		size[spec.Server] += deck.Tokens(spec.Definition)
	}
	return size
}

// tellLogs answers with what a server writes.
func (h *hub) tellLogs(ctx context.Context, said hello, l *line) error {
	tenants := h.tenancies()
	id := drawbridge.ServerID(said.Server)
	i := slices.IndexFunc(tenants, func(t *tenant) bool {
		row, ok := t.g.Config().Lookup(id)
		return ok && row.Phase == drawbridge.Idle
	})
	if i < 0 {
		err := &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: fmt.Sprintf("the hub runs no server %q", id), Next: "drawbridge ps",
		}
		return l.welcome(0, err)
	}
	if err := l.welcome(os.Getpid(), nil); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if said.Follow {
		h.work.Go(func() {
			defer cancel()
			_, _ = l.in.Next() // whoever follows says nothing more: this ends with it
		})
	}
	err := tenants[i].g.Stderr(ctx, id, said.Follow, func(text string) error { return l.write(wire.Quote(text)) })
	_ = l.conn.Close()
	return err
}

// tellReload answers with what changed. Who may still come in is looked at after that: issuers may have to be asked, which takes
// time, and says nothing to whoever waits for the answer.
func (h *hub) tellReload(ctx context.Context, said hello, l *line) error {
	if err := l.welcome(os.Getpid(), nil); err != nil {
		return err
	}
	var did Reloaded
	if said.Relist {
		h.relist(ctx, said.Servers, &did)
	}
	did, err := h.reload(ctx, did)
	if err != nil {
		return err
	}
	err = l.tell(did)
	h.recheck(ctx)
	return err
}

// relist has servers listed anew for every tenant. It comes before a reload: that looks again at what is held of the last listings,
// and what a person decided is about newer ones. Nobody who comes in meanwhile waits for it.
func (h *hub) relist(ctx context.Context, servers []drawbridge.ServerID, all *Reloaded) {
	ctx, cancel := context.WithTimeout(ctx, relistTime)
	defer cancel()
	for _, t := range h.tenancies() {
		listed, away, err := t.g.Relist(ctx, servers...)
		if err != nil {
			all.Errors = append(all.Errors, err.Error())
		}
		all.Listed, all.Away = append(all.Listed, listed...), append(all.Away, away...)
	}
}

// tenancies gives the tenants that there are now.
func (h *hub) tenancies() []*tenant {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.tenants)
}

// recheck has all doors look at who may still come in.
func (h *hub) recheck(ctx context.Context) {
	for _, t := range h.tenancies() {
		t.g.Recheck(ctx)
	}
}

// reload has every tenant take over what changed for its guests. Those of them who have another configuration from now on
// than the others move to a tenant of that. What was done before is in all. The error is ctx's: then what was read tells nobody anything.
func (h *hub) reload(ctx context.Context, all Reloaded) (Reloaded, error) {
	h.opening.Lock()
	defer h.opening.Unlock()
	for _, t := range h.tenancies() {
		h.reloadOne(ctx, t, &all)
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

func (h *hub) reloadOne(ctx context.Context, t *tenant, all *Reloaded) {
	h.mu.Lock()
	guests := slices.DeleteFunc(slices.Clone(h.guests), func(g *guest) bool { return g.tenant != t })
	h.mu.Unlock()
	keys := make(map[*guest]string, len(guests))
	for _, g := range guests {
		key, err := h.fingerprint(ctx, g)
		if err != nil {
			all.Errors = append(all.Errors, err.Error())
			key = t.key
		}
		keys[g] = key
	}
	stay := whoStays(guests)
	if stay != nil {
		t.g.Follow(stay.config)
		h.mu.Lock()
		t.key = keys[stay]
		h.mu.Unlock()
	}
	changes, err := t.g.Reload(ctx)
	if err != nil {
		all.Errors = append(all.Errors, err.Error())
	}
	all.Added = append(all.Added, changes.Added...)
	all.Removed = append(all.Removed, changes.Removed...)
	all.Changed = append(all.Changed, changes.Changed...)
	for _, g := range guests {
		if keys[g] != t.key && g.voice != nil {
			g.move()
			all.Moved++
		}
	}
}

// fingerprint says what a guest's configuration comes to now.
func (h *hub) fingerprint(ctx context.Context, g *guest) (string, error) {
	read, err := h.ground.Read(ctx, g.config)
	if err != nil {
		return "", err
	}
	return read.Fingerprint()
}

// whoStays is the guest whose configuration a tenant follows: one who cannot move, if there is one, else the first.
func whoStays(guests []*guest) *guest {
	i := slices.IndexFunc(guests, func(g *guest) bool { return g.voice == nil })
	switch {
	case i >= 0:
		return guests[i]
	case len(guests) > 0:
		return slices.MinFunc(guests, func(a, b *guest) int { return cmp.Compare(a.since.UnixNano(), b.since.UnixNano()) })
	}
	return nil
}
