package policy

import (
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// A thing is what can be called, as rules see it, whoever calls: worked out when it is first met.
type thing struct {
	server, trust string
	names         []string
	// rules are those that may be about it: the others say no to whatever is done with it.
	rules []int
	// hidden is what decides whether it is there for anybody; nil where that depends on who they are.
	hidden *Decision
}

// mostThings bounds how many are remembered.
const mostThings = 4096

// things remembers cards and prompts, of which there are as many as are listed.
type things struct {
	mu  sync.RWMutex
	all map[thingKey]*thing
}

type thingKey struct{ kind, server, tool, name, trust string }

// thing gives what is known of a card or a prompt; nil for all else, of which there may be any number.
func (p *Policy) thing(kind string, spec *drawbridge.Spec, trust string) *thing {
	if kind != Tool && kind != Prompt {
		return nil
	}
	key := thingKey{kind, string(spec.Server), spec.Tool, string(spec.Name), trust}
	p.things.mu.RLock()
	known := p.things.all[key]
	p.things.mu.RUnlock()
	if known != nil {
		return known
	}
	t := p.newThing(kind, *spec, trust)
	p.things.mu.Lock()
	defer p.things.mu.Unlock()
	if p.things.all == nil || len(p.things.all) >= mostThings {
		p.things.all = map[thingKey]*thing{}
	}
	p.things.all[key] = t
	return t
}

func (p *Policy) newThing(kind string, spec drawbridge.Spec, trust string) *thing {
	s := subject{method: MethodOf(kind)}
	s.is(kind, spec, trust)
	t := &thing{server: s.server, trust: s.trust, names: slices.Clone(s.names())}
	alike := true
	for i, r := range p.rules {
		if r.onServer(&s) == "" && r.named(&s) != no {
			t.rules = append(t.rules, i)
			// What looks at arguments is not asked here. A definition may change, of which the key says nothing.
			alike = alike && !r.aboutCallers() && (r.when == nil || r.when.about.args)
		}
	}
	if s.thing = t; alike {
		hidden := p.ask(&s, nil)
		t.hidden = &hidden
	}
	return t
}
