package policy

import (
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// A thing is what can be called, as rules see it, whoever calls. It is not changed once it was met.
type thing struct {
	// kind, id, tool, name and word say what it is, as they were given: word is that for its trust.
	kind, tool, word string
	id               drawbridge.ServerID
	name             drawbridge.CardName

	server, trust string
	// known says that it is known what is meant, names those that it is known by.
	known bool
	names []string
	// also are names that some readers take it for: no allowing rule must name them.
	also []string

	// met says that it is remembered, and what rules and hidden are; next is another one of that name.
	met  bool
	next *thing
	// rules are those that may be about it: the others say no to whatever is done with it.
	rules []int
	// hidden is what decides whether it is there for anybody; nil where that depends on who they are.
	hidden *Decision
}

// mostThings bounds how many are remembered.
const mostThings = 4096

// things remembers cards and prompts, of which there are as many as are listed, by their names.
type things struct {
	mu    sync.RWMutex
	all   map[drawbridge.CardName]*thing
	count int
}

// find gives what is remembered; nil where that is nothing.
func (t *things) find(kind string, spec *drawbridge.Spec, trust string) *thing {
	t.mu.RLock()
	one := t.all[spec.Name]
	t.mu.RUnlock()
	for one != nil && (one.tool != spec.Tool || one.id != spec.Server || one.word != trust || one.kind != kind) {
		one = one.next
	}
	return one
}

// keep remembers one more.
func (t *things) keep(one *thing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil || t.count >= mostThings {
		t.all, t.count = map[drawbridge.CardName]*thing{}, 0
	}
	one.next = t.all[one.name]
	t.all[one.name] = one
	t.count++
}

// thing gives what is known of something. Cards and prompts are remembered; of all else there may be any number.
func (p *Policy) thing(kind string, spec *drawbridge.Spec, trust string) *thing {
	if kind != Tool && kind != Prompt {
		return newThing(kind, spec, trust)
	}
	t := p.things.find(kind, spec, trust)
	if t == nil {
		t = newThing(kind, spec, trust)
		p.sort(t)
		p.things.keep(t)
	}
	return t
}

// newThing says by which names rules know it.
func newThing(kind string, spec *drawbridge.Spec, trust string) *thing {
	t := &thing{
		kind: kind, tool: spec.Tool, word: trust, id: spec.Server, name: spec.Name,
		server: fold(string(spec.Server)), trust: fold(trust),
	}
	if t.server == "" {
		t.server, t.trust = string(drawbridge.OwnServer), "trusted"
	}
	switch kind {
	case Tool, Prompt:
		t.know(fold(spec.Tool), fold(string(spec.Name)))
	case Resource, Template:
		t.add(fold(spec.Tool), fold(string(spec.Name)))
		t.knowURI(spec.Tool)
		if isFileURI(spec.Tool) {
			for _, path := range readings(spec.Tool, "") {
				t.add(fold("file://" + path))
			}
		}
	}
	return t
}

// knowURI adds the URIs that readers take one for.
func (t *thing) knowURI(uri string) {
	same, also := uriReadings(uri)
	for _, one := range same {
		if one = fold(one); !slices.Contains(t.names, one) {
			t.add(one)
		}
	}
	for _, one := range also {
		if one = fold(one); !slices.Contains(t.names, one) && !slices.Contains(t.also, one) {
			t.also = append(t.also, one)
		}
	}
}

// know adds the names of what its server calls own, and callers listed. A name that was cleaned of what nobody sees is another
// one than the server's own: both count.
func (t *thing) know(own, listed string) {
	t.add(own, t.server+":"+own, listed)
	bare, qualified := strings.CutPrefix(listed, t.server+drawbridge.Qualifier)
	if !qualified || bare != own {
		t.add(t.server+drawbridge.Qualifier+own, bare, t.server+":"+bare)
	}
}

func (t *thing) add(names ...string) { t.known, t.names = true, append(t.names, names...) }

// sort finds the rules that may be about it, and whether they say the same to everybody.
func (p *Policy) sort(t *thing) {
	s := subject{thing: t, method: MethodOf(t.kind)}
	alike := true
	for i, r := range p.rules {
		if r.onServer(&s) == "" && r.named(&s) != no {
			t.rules = append(t.rules, i)
			// What looks at arguments is not asked here. A definition may change, of which nothing is remembered.
			alike = alike && !r.aboutCallers() && (r.when == nil || r.when.about.args)
		}
	}
	if t.met = true; alike {
		hidden := p.ask(&s, nil)
		t.hidden = &hidden
	}
}
