package policy

import (
	"slices"
	"sync"
)

// A thing is what can be called, as rules see it, whoever calls: worked out when it is first met.
type thing struct {
	server, trust string
	names         []string
	// rules are those that may be about it: the others say no to whatever is done with it.
	rules []int
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
func (p *Policy) thing(s *subject, trust string) *thing {
	if s.kind != Tool && s.kind != Prompt {
		return nil
	}
	key := thingKey{s.kind, string(s.spec.Server), s.spec.Tool, string(s.spec.Name), trust}
	p.things.mu.RLock()
	known := p.things.all[key]
	p.things.mu.RUnlock()
	if known != nil {
		return known
	}
	var any subject
	any.is(s.kind, s.spec, trust)
	t := &thing{server: any.server, trust: any.trust, names: slices.Clone(any.names())}
	for i, r := range p.rules {
		if r.onServer(&any) == "" && r.named(&any) != no {
			t.rules = append(t.rules, i)
		}
	}
	p.things.mu.Lock()
	defer p.things.mu.Unlock()
	if p.things.all == nil || len(p.things.all) >= mostThings {
		p.things.all = map[thingKey]*thing{}
	}
	p.things.all[key] = t
	return t
}
