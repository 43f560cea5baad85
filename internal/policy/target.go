package policy

import (
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// A ruleTarget is what can be called, as rules see it, the caller. It is not changed once it was met.
type ruleTarget struct {
	// kind, id, tool, name and word say what it is, as they were given: word is that for its trust.
	kind, tool, word string
	id               drawbridge.ServerID
	name             drawbridge.CardName

	server, trust string
	// nameKnown reports that it is known what is meant, names those that it is known by.
	nameKnown bool
	names     []string
	// also are names that some readers take it for: no allowing rule must name them.
	also []string

	// cached reports that it is remembered, and what rules and hidden are; next is another one of that name.
	cached bool
	next   *ruleTarget
	// rules are those that may be about it: the others say no to whatever is done with it.
	rules []int
	// hidden is what decides whether it is there for anybody; nil where that depends on who they are.
	hidden *Decision
}

// maxCachedTargets bounds how many are remembered.
const maxCachedTargets = 4096

// targetCache remembers cards and prompts, of which there are as many as are listed, by their names.
type targetCache struct {
	mu    sync.RWMutex
	all   map[drawbridge.CardName]*ruleTarget
	count int
}

// find returns what is remembered; nil where that is nothing.
func (t *targetCache) find(kind string, spec *drawbridge.Spec, trust string) *ruleTarget {
	t.mu.RLock()
	one := t.all[spec.Name]
	t.mu.RUnlock()
	for one != nil && (one.tool != spec.Tool || one.id != spec.Server || one.word != trust || one.kind != kind) {
		one = one.next
	}
	return one
}

// add remembers one more.
func (t *targetCache) add(one *ruleTarget) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil || t.count >= maxCachedTargets {
		t.all, t.count = map[drawbridge.CardName]*ruleTarget{}, 0
	}
	one.next = t.all[one.name]
	t.all[one.name] = one
	t.count++
}

// targetFor returns what is known of something. Cards and prompts are remembered; of all else there may be any number.
func (p *Policy) targetFor(kind string, spec *drawbridge.Spec, trust string) *ruleTarget {
	if kind != KindTool && kind != KindPrompt {
		return newTarget(kind, spec, trust)
	}
	t := p.targets.find(kind, spec, trust)
	if t == nil {
		t = newTarget(kind, spec, trust)
		p.findRelevantRules(t)
		p.targets.add(t)
	}
	return t
}

// newTarget says by which names rules know it.
func newTarget(kind string, spec *drawbridge.Spec, trust string) *ruleTarget {
	t := &ruleTarget{
		kind: kind, tool: spec.Tool, word: trust, id: spec.Server, name: spec.Name,
		server: foldLabel(string(spec.Server)), trust: foldLabel(trust),
	}
	if t.server == "" {
		t.server, t.trust = string(drawbridge.OwnServer), "trusted"
	}
	switch kind {
	case KindTool, KindPrompt:
		t.addServerNames(foldLabel(spec.Tool), foldLabel(string(spec.Name)))
	case KindResource, KindTemplate:
		t.addNames(foldLabel(spec.Tool), foldLabel(string(spec.Name)))
		t.knowURI(spec.Tool)
		if isFileURI(spec.Tool) {
			for _, path := range pathReadings(spec.Tool, "") {
				t.addNames(foldLabel("file://" + path))
			}
		}
	}
	return t
}

// knowURI adds the URIs that readers take one for.
func (t *ruleTarget) knowURI(uri string) {
	same, also := uriReadings(uri)
	for _, one := range same {
		if one = foldLabel(one); !slices.Contains(t.names, one) {
			t.addNames(one)
		}
	}
	for _, one := range also {
		if one = foldLabel(one); !slices.Contains(t.names, one) && !slices.Contains(t.also, one) {
			t.also = append(t.also, one)
		}
	}
}

// addServerNames adds the names of what its server calls own, and callers listed. A name that was cleaned of what
// nobody sees is another one than the server's own: both count.
func (t *ruleTarget) addServerNames(own, listed string) {
	t.addNames(own, t.server+":"+own, listed)
	bare, qualified := strings.CutPrefix(listed, t.server+drawbridge.NameSeparator)
	if !qualified || bare != own {
		t.addNames(t.server+drawbridge.NameSeparator+own, bare, t.server+":"+bare)
	}
}

func (t *ruleTarget) addNames(names ...string) {
	t.nameKnown, t.names = true, append(t.names, names...)
}

// findRelevantRules finds the rules that may be about it, and whether they say the same to everybody.
func (p *Policy) findRelevantRules(t *ruleTarget) {
	s := ruleSubject{ruleTarget: t, method: MethodOf(t.kind)}
	alike := true
	for i, r := range p.rules {
		if r.serverMismatch(&s) == "" && r.matchName(&s) != matchNo {
			t.rules = append(t.rules, i)
			// What looks at arguments is not asked here. A definition may change, of which nothing is remembered.
			alike = alike && !r.looksAtCaller() && (r.when == nil || r.when.mentions.args)
		}
	}
	if t.cached = true; alike {
		hidden := p.firstDecision(&s, nil)
		t.hidden = &hidden
	}
}
